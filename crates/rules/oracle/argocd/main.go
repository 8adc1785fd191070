// Judges NDJSON objects with Argo CD's own Lua VM, script library and built-in rules.
//
// In:  {"object": {...}}                                   as a live Argo CD would: deletion, script, built-in rule
//      {"object": {...}, "script": "...", "open": true}    this script alone, with or without the open libraries
// Out: {"status", "message", "error"}; status null for "no health", error true where Go returned one.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
)

type line struct {
	Object map[string]any `json:"object"`
	Script *string        `json:"script"`
	Open   bool           `json:"open"`
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
	u := &unstructured.Unstructured{Object: l.Object}
	var h *health.HealthStatus
	var err error
	if l.Script != nil {
		h, err = lua.VM{UseOpenLibs: l.Open}.ExecuteHealthLua(u, *l.Script)
		if err != nil {
			h = &health.HealthStatus{Status: health.HealthStatusUnknown, Message: err.Error()}
		}
	} else {
		h, err = health.GetResourceHealth(u, lua.ResourceHealthOverrides{})
	}
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
