"""End-to-end user stories: from files on disk to results. `.ci/installed` runs them on the installed wheel."""
