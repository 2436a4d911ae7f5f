// The look at every tensor's address that comes before each replay: see addresses.py.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>

namespace {

void* (*address_of)(PyObject*) = nullptr;  // torch's own, which throws what has no memory

// same_addresses(tensors, addresses, indices): whether the tensors at the indices are at the addresses of the same
// indices. The tensors are in a list or a tuple, the others in lists.
PyObject* same_addresses(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const bool listed = count == 3 && (PyList_Check(arguments[0]) || PyTuple_Check(arguments[0]));
  if (!listed || !PyList_Check(arguments[1]) || !PyList_Check(arguments[2])) {
    PyErr_SetString(PyExc_TypeError, "expected a list or tuple of tensors, and lists of addresses and of indices");
    return nullptr;
  }
  PyObject *tensors = arguments[0], *addresses = arguments[1], *indices = arguments[2];
  try {
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(indices); ++at) {
      const Py_ssize_t index = PyLong_AsSsize_t(PyList_GET_ITEM(indices, at));
      if (index < 0 || index >= PySequence_Fast_GET_SIZE(tensors) || index >= PyList_GET_SIZE(addresses)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "an index is out of range");
        return nullptr;
      }
      void* const expected = PyLong_AsVoidPtr(PyList_GET_ITEM(addresses, index));
      if (expected == nullptr && PyErr_Occurred()) return nullptr;
      if (address_of(PySequence_Fast_GET_ITEM(tensors, index)) != expected) Py_RETURN_FALSE;
    }
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  Py_RETURN_TRUE;
}

// ask(pointer): ask the C function at this address where a tensor is.
PyObject* ask(PyObject*, PyObject* pointer) {
  void* const function = PyLong_AsVoidPtr(pointer);
  if (function == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no function is at address 0");
    return nullptr;
  }
  address_of = reinterpret_cast<void* (*)(PyObject*)>(function);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"same_addresses", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(same_addresses)), METH_FASTCALL, nullptr},
    {"ask", ask, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "fusescope_addresses", nullptr, -1, methods};

}  // namespace

PyMODINIT_FUNC PyInit_fusescope_addresses() { return PyModule_Create(&module); }
