//! When a watch may begin: every ready worker has been measured or has timed out once. Never false again.
