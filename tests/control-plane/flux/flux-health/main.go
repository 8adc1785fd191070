// Judges NDJSON objects with Flux's own evaluator of healthCheckExprs.
//
//	flux-health CURRENT [FAILED [IN_PROGRESS]]
//
// In:  {"object": {...}}
// Out: {"status", "message"}; status null where Flux returns an error. One answer a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
)

type answer struct {
	Status  *string `json:"status"`
	Message string  `json:"message"`
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "flux-health: failed to %s: %v\n", what, err)
	os.Exit(2)
}

func judge(evaluator *cel.StatusEvaluator, object map[string]any) answer {
	result, err := evaluator.Evaluate(context.Background(), &unstructured.Unstructured{Object: object})
	if err != nil {
		return answer{nil, err.Error()}
	}
	status := string(result.Status)
	return answer{&status, result.Message}
}

func main() {
	expressions := make([]string, 3)
	copy(expressions, os.Args[1:])
	evaluator, err := cel.NewStatusEvaluator(&kustomize.HealthCheckExpressions{
		Current: expressions[0], Failed: expressions[1], InProgress: expressions[2],
	})
	if err != nil {
		fail("compile", err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var line struct {
			Object map[string]any `json:"object"`
		}
		// As the API machinery reads it: integers stay integers.
		if err := k8sjson.Unmarshal(lines.Bytes(), &line); err != nil {
			fail("read a line", err)
		}
		if err := out.Encode(judge(evaluator, line.Object)); err != nil {
			fail("answer", err)
		}
	}
	if err := lines.Err(); err != nil {
		fail("read", err)
	}
}
