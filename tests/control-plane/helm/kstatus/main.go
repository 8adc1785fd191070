// Judges NDJSON objects with the very kstatus that Helm of this module waits by (Flux uses the same).
//
// In:  {"object": {...}}
// Out: {"status", "message"}; status Unknown where the code returns an error. One answer a line, at once.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
)

type line struct {
	Object map[string]any `json:"object"`
}

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func judge(object map[string]any) answer {
	r, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		return answer{"Unknown", err.Error()}
	}
	return answer{string(r.Status), r.Message}
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var l line
		if err := k8sjson.Unmarshal(in.Bytes(), &l); err != nil {
			fmt.Fprintln(os.Stderr, "kstatus: failed to decode a line:", err)
			os.Exit(2)
		}
		_ = out.Encode(judge(l.Object))
	}
}
