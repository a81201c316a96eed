//! What node_exporter says when it is asked for netdev and netclass: as many lines as on a node with some pods, all the
//! same but for one counter.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use super::super::objects::CAPACITY;

/// Series of the two collectors, as node_exporter 1.10 has them.
const SERIES: [&str; 30] = [
    "node_network_address_assign_type",
    "node_network_carrier",
    "node_network_carrier_changes_total",
    "node_network_carrier_down_changes_total",
    "node_network_carrier_up_changes_total",
    "node_network_device_id",
    "node_network_dormant",
    "node_network_flags",
    "node_network_iface_id",
    "node_network_iface_link",
    "node_network_iface_link_mode",
    "node_network_mtu_bytes",
    "node_network_name_assign_type",
    "node_network_net_dev_group",
    "node_network_protocol_type",
    "node_network_receive_compressed_total",
    "node_network_receive_drop_total",
    "node_network_receive_errs_total",
    "node_network_receive_fifo_total",
    "node_network_receive_frame_total",
    "node_network_receive_multicast_total",
    "node_network_receive_packets_total",
    "node_network_transmit_carrier_total",
    "node_network_transmit_colls_total",
    "node_network_transmit_compressed_total",
    "node_network_transmit_drop_total",
    "node_network_transmit_errs_total",
    "node_network_transmit_fifo_total",
    "node_network_transmit_packets_total",
    "node_network_transmit_queue_length",
];
const PODS: usize = 10;
/// As many as the operator reads of one answer.
const CROWD: usize = 4096;

/// An answer, without the one counter.
pub(super) struct Page {
    before: String,
}

impl Page {
    pub(super) fn new() -> Self {
        let mut devices = vec!["eth0".to_owned(), "lo".to_owned()];
        devices.extend((0..PODS).map(|pod| format!("cali{pod:011x}")));
        let speed = CAPACITY.to_string();
        let mut before = String::new();
        for (name, value) in SERIES.map(|name| (name, "7")).into_iter().chain([
            ("node_network_receive_bytes_total", "1000"),
            ("node_network_speed_bytes", speed.as_str()),
        ]) {
            // Writing to a String does not fail.
            let _ = writeln!(before, "# HELP {name} Network device.\n# TYPE {name} gauge");
            for device in &devices {
                let _ = writeln!(before, "{name}{{device=\"{device}\"}} {value}");
            }
        }
        for device in &devices[1..] {
            let _ = writeln!(
                before,
                "node_network_transmit_bytes_total{{device=\"{device}\"}} 1000"
            );
        }
        before.push_str("node_network_transmit_bytes_total{device=\"eth0\"} ");
        Self { before }
    }

    /// The whole answer, in one piece.
    pub(super) fn write(&self, stream: &mut impl Write, sent: u64) -> io::Result<()> {
        let end = format!("{sent}\n");
        let length = self.before.len() + end.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all([head.as_str(), &self.before, &end].concat().as_bytes())
    }
}

/// An answer with more interfaces than any host has, under names that nobody excludes.
pub(super) fn crowd() -> String {
    let mut text = "HTTP/1.1 200 OK\r\n\r\n".to_owned();
    for number in 0..CROWD {
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "node_network_transmit_bytes_total{{device=\"eth{number:060}\"}} {number}"
        );
    }
    text
}
