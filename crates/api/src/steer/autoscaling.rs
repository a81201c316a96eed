//! How the parts of a `TrafficSchedule` scale. Two types of the same shape, since a default belongs
//! to a place in the schema, and the router's differ from the others'.

use kube::core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults::{ROUTER_AUTOSCALING, WORKER_AUTOSCALING};

macro_rules! autoscaling {
    ($(#[$doc:meta])* $name:ident, defaults: $defaults:ident, fewest: $fewest:literal, most: $most:literal) => {
        $(#[$doc])*
        #[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase", default)]
        #[schemars(extend("x-kubernetes-validations" = [min_below_max()]))]
        pub struct $name {
            #[doc = $fewest]
            // Its maximum is the other's, by the rule above.
            #[schemars(range(min = 0))]
            pub min_replica_count: i32,

            #[doc = $most]
            // Its minimum is the other's.
            #[schemars(range(max = i32::MAX))]
            pub max_replica_count: i32,

            /// Seconds without load before replicas are taken away.
            #[schemars(range(min = 0, max = i32::MAX))]
            pub cooldown_period: i32,

            /// CPU use, in percent of the request, above which replicas are added.
            #[schemars(range(min = 1, max = i32::MAX))]
            pub cpu_utilization: i32,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    min_replica_count: $defaults.min_replica_count,
                    max_replica_count: $defaults.max_replica_count,
                    cooldown_period: $defaults.cooldown_period,
                    cpu_utilization: $defaults.cpu_utilization,
                }
            }
        }
    };
}

autoscaling! {
    /// How the router scales.
    RouterAutoscaling, defaults: ROUTER_AUTOSCALING,
    fewest: "Fewest replicas. The router always has at least one.",
    most: "Most replicas, whatever the grid does."
}

autoscaling! {
    /// How the consumer or the flavours scale.
    WorkerAutoscaling, defaults: WORKER_AUTOSCALING,
    fewest: "Fewest replicas.",
    most: "Most replicas when the grid is clean; fewer at a lower throttle, never below one."
}

fn min_below_max() -> Rule {
    // The schema's own defaults are in place before a rule is asked, so both are always there.
    Rule::new("self.minReplicaCount <= self.maxReplicaCount")
        .message("minReplicaCount must not be above maxReplicaCount")
        .field_path(".minReplicaCount")
}
