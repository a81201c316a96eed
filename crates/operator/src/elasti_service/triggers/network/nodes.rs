//! Where the kubelet of a node is: its Node says so, which is read when it is first asked, and again when it cannot be reached
//! there. Nodes are not watched for it: each writes its status every few minutes, and its address hardly ever changes.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use thiserror::Error;
use weir_api::{dns::check_dns_subdomain, hold::defaults::KUBELET_PORT};

/// Why nobody knows where a kubelet is.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The name is somebody's word: that of whoever writes EndpointSlices.
    #[error("no Node is called so")]
    Missing,
    /// We may not.
    #[error(
        "its Node cannot be read (403); the operator needs the right to get nodes, so apply `weir manifests` again"
    )]
    Forbidden,
    /// The API server.
    #[error("its Node cannot be read at the moment")]
    Read(#[source] Box<kube::Error>),
    /// It has no address of its own.
    #[error("its Node has no address of the type InternalIP")]
    NoAddress,
}

/// Asks the API server where the kubelet of a node is; `port` overrules what the Node says.
pub async fn find(client: Client, node: &str, port: Option<u16>) -> Result<SocketAddr, NodeError> {
    // It becomes part of a path.
    check_dns_subdomain(node).map_err(|_| NodeError::Missing)?;
    let nodes: Api<Node> = Api::all(client);
    match nodes.get_opt(node).await {
        Ok(found) => place(&found.ok_or(NodeError::Missing)?, port),
        Err(kube::Error::Api(status)) if status.code == 403 => Err(NodeError::Forbidden),
        Err(error) => Err(NodeError::Read(Box::new(error))),
    }
}

/// Where a Node says that its kubelet is.
fn place(node: &Node, port: Option<u16>) -> Result<SocketAddr, NodeError> {
    let status = node.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_deref());
    let internal = addresses
        .unwrap_or_default()
        .iter()
        .filter(|address| address.type_ == "InternalIP")
        .find_map(|address| address.address.parse::<IpAddr>().ok());
    let its_own = || {
        let endpoints = status?.daemon_endpoints.as_ref()?;
        let port = endpoints.kubelet_endpoint.as_ref()?.port;
        u16::try_from(port).ok().filter(|port| *port != 0)
    };
    let port = port.or_else(its_own).unwrap_or(KUBELET_PORT);
    let address = internal.ok_or(NodeError::NoAddress)?;
    Ok(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(status: &Value, port: Option<u16>) -> Result<String, String> {
        let node = json!({"metadata": {"name": "n1"}, "status": status});
        let node: Node = serde_json::from_value(node).unwrap();
        let place = place(&node, port);
        place
            .map(|place| place.to_string())
            .map_err(|error| error.to_string())
    }

    fn addresses(own: &str) -> Value {
        json!([
            {"type": "Hostname", "address": "n1"},
            {"type": "ExternalIP", "address": "192.0.2.1"},
            {"type": "InternalIP", "address": own},
            {"type": "InternalIP", "address": "10.0.0.99"},
        ])
    }

    #[test]
    fn a_node_says_where_its_kubelet_is() {
        let bare = json!({"addresses": addresses("10.0.0.1")});
        let mut with_port = json!({"addresses": addresses("fd00::1")});
        with_port["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": 10_255}});
        let mut with_none = bare.clone();
        with_none["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": 0}});
        for (status, port, found) in [
            (&bare, None, "10.0.0.1:10250"),
            (&bare, Some(7), "10.0.0.1:7"),
            (&with_port, None, "[fd00::1]:10255"),
            (&with_port, Some(7), "[fd00::1]:7"),
            (&with_none, None, "10.0.0.1:10250"),
        ] {
            assert_eq!(of(status, port).as_deref(), Ok(found));
        }
    }

    #[test]
    fn a_node_without_an_address_of_its_own_cannot_be_asked() {
        for status in [
            json!({}),
            json!({"addresses": [{"type": "ExternalIP", "address": "192.0.2.1"}]}),
            json!({"addresses": [{"type": "InternalIP", "address": "n1.example"}]}),
        ] {
            let error = of(&status, None).unwrap_err();
            assert!(error.contains("InternalIP"), "{error}");
        }
    }
}
