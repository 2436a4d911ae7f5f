"""torch's own database of operators (op_db), driven through the compiler: ``python -m tests.ops.suite --help``."""
