// Evaluates NDJSON objects with the built-in rules of a newer gitops-engine than the one of tests/control-plane/argocd.
//
// In:  {"object": {...}}
// Out: {"status", "message", "error"}; status null for "no health", error true where Go returned one.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
)

type line struct {
	Object map[string]any `json:"object"`
}

type answer struct {
	Status  *string `json:"status"`
	Message string  `json:"message"`
	Error   bool    `json:"error"`
}

func judge(l line) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			status := "Panic"
			a = answer{&status, fmt.Sprint(p), true}
		}
	}()
	h, err := health.GetResourceHealth(&unstructured.Unstructured{Object: l.Object}, nil)
	if h == nil {
		return answer{nil, "", err != nil}
	}
	status := string(h.Status)
	return answer{&status, h.Message, err != nil}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var l line
		if err := k8sjson.Unmarshal(in.Bytes(), &l); err != nil {
			fmt.Fprintln(os.Stderr, "failed to decode a line:", err)
			os.Exit(2)
		}
		_ = out.Encode(judge(l))
	}
}
