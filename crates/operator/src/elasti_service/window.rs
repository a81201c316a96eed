//! `enabledPeriod`: whether now lies in a window, and when that changes.
