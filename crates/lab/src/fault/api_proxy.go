// Stands before the API server and fails as it is told; see api.rs.
//
//	api-proxy LISTEN-ADDRESS API-SERVER-URL CA-FILE CERTIFICATE-FILE KEY-FILE
//
// Serves plain HTTP. A request with a token goes on as that user, one without as the certificate's.
// PUT /weir-fault sets what fails, POST /weir-fault/cut ends what is under way, GET /weir-fault says what happened.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
)

// What fails: requests of these methods whose path begins so, `Times` of them or, with 0, none.
type fault struct {
	Status     int
	Times      int
	Path       string
	Methods    []string
	RetryAfter int
}

type proxy struct {
	sync.Mutex
	fault    fault
	failed   int
	passed   int
	cut      int
	underway map[*http.Request]context.CancelFunc
}

func (p *proxy) fails(r *http.Request) (fault, bool) {
	p.Lock()
	defer p.Unlock()
	f := p.fault
	meant := len(f.Methods) == 0
	for _, method := range f.Methods {
		meant = meant || method == r.Method
	}
	if f.Times == 0 || !meant || !strings.HasPrefix(r.URL.Path, f.Path) {
		p.passed++
		return f, false
	}
	p.fault.Times--
	p.failed++
	return f, true
}

func main() {
	target, err := url.Parse(os.Args[2])
	check(err)
	authority, err := os.ReadFile(os.Args[3])
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	pair, err := tls.LoadX509KeyPair(os.Args[4], os.Args[5])
	check(err)
	through := func(certificates []tls.Certificate) *httputil.ReverseProxy {
		reverse := httputil.NewSingleHostReverseProxy(target)
		reverse.Transport = &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool, Certificates: certificates},
			MaxIdleConnsPerHost: 100,
		}
		reverse.FlushInterval = -1 // events of a watch must not wait in a buffer
		return reverse
	}
	asAdmin, asUser := through([]tls.Certificate{pair}), through(nil)
	p := &proxy{underway: map[*http.Request]context.CancelFunc{}}

	http.HandleFunc("/weir-fault", func(w http.ResponseWriter, r *http.Request) {
		p.Lock()
		defer p.Unlock()
		if r.Method == http.MethodPut {
			p.fault = fault{}
			if err := json.NewDecoder(r.Body).Decode(&p.fault); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
			return
		}
		json.NewEncoder(w).Encode(map[string]int{"failed": p.failed, "passed": p.passed, "cut": p.cut, "underway": len(p.underway)})
	})
	http.HandleFunc("/weir-fault/cut", func(w http.ResponseWriter, r *http.Request) {
		p.Lock()
		defer p.Unlock()
		p.cut += len(p.underway)
		for _, cancel := range p.underway {
			cancel()
		}
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if f, fails := p.fails(r); fails {
			if f.RetryAfter > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(f.RetryAfter))
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.Status)
			json.NewEncoder(w).Encode(map[string]any{
				"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": f.Status,
				"reason": map[int]string{429: "TooManyRequests", 500: "InternalError"}[f.Status], "message": "as told by a test",
			})
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		p.Lock()
		p.underway[r] = cancel
		p.Unlock()
		defer func() {
			p.Lock()
			delete(p.underway, r)
			p.Unlock()
			cancel()
		}()
		if r.Header.Get("Authorization") != "" {
			asUser.ServeHTTP(w, r.WithContext(ctx))
		} else {
			asAdmin.ServeHTTP(w, r.WithContext(ctx))
		}
	})
	check(http.ListenAndServe(os.Args[1], nil))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
