//! The silent connection through a Service, by which a cut-over is seen to work.
