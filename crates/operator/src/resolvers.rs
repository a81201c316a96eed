//! The resolvers that are there, and what each of them knows.
