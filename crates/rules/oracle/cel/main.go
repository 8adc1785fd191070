// Evaluates NDJSON expressions with the real cel-go and the libraries of Flux, kro and Kubernetes: the other half of the
// differential tests.
//
// In:  {"object": {...}, "source": "..."}
// Out: {"value": true} or {"error": "..."} or {"type": "..."} for a value that is no boolean; {"syntax": "..."} where it
// does not parse.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/cel/library"
)

type line struct {
	Object map[string]any `json:"object"`
	Source string         `json:"source"`
}

type answer struct {
	Value  *bool  `json:"value,omitempty"`
	Error  string `json:"error,omitempty"`
	Type   string `json:"type,omitempty"`
	Syntax string `json:"syntax,omitempty"`
}

func judge(env *cel.Env, l line) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{Error: fmt.Sprint("panic: ", p)}
		}
	}()
	ast, issues := env.Parse(l.Source)
	if issues != nil && issues.Err() != nil {
		return answer{Syntax: issues.String()}
	}
	program, err := env.Program(ast)
	if err != nil {
		return answer{Syntax: err.Error()}
	}
	value, _, err := program.Eval(l.Object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if truth, ok := value.(types.Bool); ok {
		b := bool(truth)
		return answer{Value: &b}
	}
	return answer{Type: value.Type().TypeName()}
}

func main() {
	env, err := cel.NewEnv(
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		ext.Strings(), ext.Sets(), ext.Encoders(), ext.Lists(), ext.Bindings(), ext.TwoVarComprehensions(),
		library.Lists(), library.URLs(), library.Regex(), library.Quantity(), library.IP(), library.CIDR(),
		library.SemverLib(library.SemverVersion(1)),
	)
	if err != nil {
		panic(err)
	}
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	in.Buffer(nil, 64<<20)
	defer out.Flush()
	for in.Scan() {
		var l line
		// As Kubernetes decodes it: integers that fit are integers.
		if err := k8sjson.Unmarshal(in.Bytes(), &l.Object); err != nil {
			panic(err)
		}
		l.Source, _ = l.Object["source"].(string)
		l.Object, _ = l.Object["object"].(map[string]any)
		said, err := json.Marshal(judge(env, l))
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%s\n", said)
	}
}
