// Evaluates NDJSON objects with the real kstatus and the real Flux code: the other half of the differential tests.
//
// In:  {"object": {...}} or {"object": {...}, "cel": {"current": "...", "inProgress": "...", "failed": "..."}}
// Out: {"kstatus": {"status", "message"}, "flux": {...}, "cel": {...}}; status Unknown where the code returns an error.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/runtime/statusreaders"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	upstream "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type line struct {
	Object map[string]any                    `json:"object"`
	CEL    *kustomize.HealthCheckExpressions `json:"cel"`
}

func guard(judge func() (answer, error)) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{"Panic", fmt.Sprint(p)}
		}
	}()
	a, err := judge()
	if err != nil {
		return answer{"Unknown", err.Error()}
	}
	return a
}

func kstatus(u *unstructured.Unstructured) (answer, error) {
	r, err := upstream.Compute(u)
	if err != nil {
		return answer{}, err
	}
	return answer{string(r.Status), r.Message}, nil
}

func flux(u *unstructured.Unstructured) (answer, error) {
	if u.GroupVersionKind().GroupKind().String() == "Job.batch" {
		r := statusreaders.ComputeJobStatus(u)
		return answer{string(r.Status), r.Message}, nil
	}
	r, err := status.Compute(u)
	if err != nil {
		return answer{}, err
	}
	return answer{string(r.Status), r.Message}, nil
}

func expressions(u *unstructured.Unstructured, exprs *kustomize.HealthCheckExpressions) (answer, error) {
	e, err := cel.NewStatusEvaluator(exprs)
	if err != nil {
		return answer{"Rejected", err.Error()}, nil
	}
	r, err := e.Evaluate(context.Background(), u)
	if err != nil {
		return answer{}, err
	}
	return answer{string(r.Status), r.Message}, nil
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
		answers := map[string]answer{}
		u := &unstructured.Unstructured{Object: l.Object}
		if l.CEL != nil {
			answers["cel"] = guard(func() (answer, error) { return expressions(u, l.CEL) })
		} else {
			answers["kstatus"] = guard(func() (answer, error) { return kstatus(u) })
			answers["flux"] = guard(func() (answer, error) { return flux(u) })
		}
		_ = out.Encode(answers)
	}
}
