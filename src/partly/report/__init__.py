"""What people see: the page of a run, the words and pictures in it, and the progress bar."""
