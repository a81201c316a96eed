// The sandbox container of every pod: holds the pod's namespaces open until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// In a pod that shares its process namespace this is process 1, and orphans come to it: the kernel reaps those
	// of a parent that ignores them.
	signal.Ignore(syscall.SIGCHLD)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
