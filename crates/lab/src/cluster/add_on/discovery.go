// Tells Prometheus what to scrape: pods and nodes of the API server, with the labels that Prometheus' own discovery of
// Kubernetes gives them. Debian builds Prometheus without that one; over HTTP it can ask anyone.
//
//	discovery LISTEN-ADDRESS API-SERVER-URL CA-FILE CERTIFICATE-FILE KEY-FILE
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"time"
)

type object struct {
	Metadata struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec   struct{ NodeName string }
	Status struct {
		PodIP, Phase string
		Addresses    []struct{ Type, Address string }
	}
}

type target struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

var notInLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func labelled(labels map[string]string, prefix string, of map[string]string) {
	for name, value := range of {
		labels[prefix+notInLabels.ReplaceAllString(name, "_")] = value
	}
}

func pod(o object) target {
	labels := map[string]string{
		"__meta_kubernetes_namespace":     o.Metadata.Namespace,
		"__meta_kubernetes_pod_name":      o.Metadata.Name,
		"__meta_kubernetes_pod_ip":        o.Status.PodIP,
		"__meta_kubernetes_pod_phase":     o.Status.Phase,
		"__meta_kubernetes_pod_node_name": o.Spec.NodeName,
	}
	labelled(labels, "__meta_kubernetes_pod_annotation_", o.Metadata.Annotations)
	labelled(labels, "__meta_kubernetes_pod_label_", o.Metadata.Labels)
	return target{[]string{o.Status.PodIP}, labels}
}

func node(o object) target {
	labels := map[string]string{"__meta_kubernetes_node_name": o.Metadata.Name}
	for _, address := range o.Status.Addresses {
		labels["__meta_kubernetes_node_address_"+address.Type] = address.Address
	}
	labelled(labels, "__meta_kubernetes_node_label_", o.Metadata.Labels)
	return target{[]string{o.Metadata.Name}, labels}
}

func main() {
	listen, server := os.Args[1], os.Args[2]
	authority, err := os.ReadFile(os.Args[3])
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	pair, err := tls.LoadX509KeyPair(os.Args[4], os.Args[5])
	check(err)
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
	}}
	serve := func(path, list string, describe func(object) target) {
		http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			// Version 0 is what the server has in memory: it need not ask etcd.
			answer, err := client.Get(server + list + "?resourceVersion=0")
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer answer.Body.Close()
			var objects struct{ Items []object }
			if err := json.NewDecoder(answer.Body).Decode(&objects); err != nil || answer.StatusCode != http.StatusOK {
				http.Error(w, fmt.Sprint(answer.Status, err), http.StatusBadGateway)
				return
			}
			targets := []target{}
			for _, o := range objects.Items {
				targets = append(targets, describe(o))
			}
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(targets)
		})
	}
	serve("/pods", "/api/v1/pods", pod)
	serve("/nodes", "/api/v1/nodes", node)
	check(http.ListenAndServe(listen, nil))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
