//! Whether a Lease may be taken: a function of what was seen and of when it was seen.
