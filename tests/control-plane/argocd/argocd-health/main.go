// Judges NDJSON objects with Argo CD's own Lua VM, script library, settings and built-in rules.
//
//	argocd-health [RULES]
//
// RULES is a ConfigMap in a file, read by Argo CD's own settings code, or a folder laid out as its
// resource_customizations; each overrides the library that is built in.
//
// In:  {"object": {...}}                                   as a live Argo CD would: deletion, script, built-in rule
//
//	{"object": {...}, "script": "...", "open": true}    this script alone, with or without the open libraries
//
// Out: {"status", "message", "error"}; status null for "no health", error true where Go returned one. One answer
// a line, at once: it may be kept running.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/sirupsen/logrus"
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

func judge(l line, overrides lua.ResourceHealthOverrides) (a answer) {
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
		h, err = health.GetResourceHealth(u, overrides)
	}
	if h == nil {
		return answer{nil, "", err != nil}
	}
	status := string(h.Status)
	return answer{&status, h.Message, err != nil}
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "argocd-health: failed to %s: %v\n", what, err)
	os.Exit(2)
}

func main() {
	logrus.SetOutput(io.Discard)
	overrides := lua.ResourceHealthOverrides{}
	if len(os.Args) > 1 {
		read, err := rules(os.Args[1])
		if err != nil {
			fail("read "+os.Args[1], err)
		}
		overrides = read
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var l line
		if err := k8sjson.Unmarshal(in.Bytes(), &l); err != nil {
			fail("decode a line", err)
		}
		_ = out.Encode(judge(l, overrides))
	}
}
