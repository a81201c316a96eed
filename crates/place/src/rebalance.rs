//! Which running pods to move off nodes that stay unfit, as a function of what is: within the limits of `rebalance`, and
//! only where they fit elsewhere. Moving them is up to the caller, by the eviction API alone.
