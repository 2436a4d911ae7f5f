"""The replay lab: modes run or played back, their times live, as distributions and compared."""
