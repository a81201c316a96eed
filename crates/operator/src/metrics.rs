//! What the operator counts, under the names that the peers' dashboards know.
