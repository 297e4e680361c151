"""The files of jobs, in directories of this machine or of any file system that Hadoop knows."""
