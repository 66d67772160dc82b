"""From a table to a run: estimators, fitting, planning and publishing."""
