// Prints the fields of the Kubernetes types that Argo CD's built-in rules convert to, for ../../../src/argocd/types.txt.
//
// One line a struct: its name, then `field:type`. Types: s string, b bool, i int32, l int64, f float, T time, M micro
// time, Q quantity, I int or string, x anything, @ bytes, [] list of, {} map to, or the name of another struct.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationv1beta1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
)

var custom = map[string]string{
	"v1.Time": "T", "v1.MicroTime": "M", "resource.Quantity": "Q", "intstr.IntOrString": "I", "v1.FieldsV1": "x",
	"runtime.RawExtension": "x",
}

var unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()

var lines = map[string]string{}

func name(t reflect.Type) string {
	pkg := strings.Split(t.PkgPath(), "/")
	return fmt.Sprintf("%s.%s", strings.Join(pkg[len(pkg)-2:], "/"), t.Name())
}

func code(t reflect.Type) string {
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshaler) {
		if c, ok := custom[t.String()]; ok {
			return c
		}
		panic("no code for " + t.String())
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32:
		return "i"
	case reflect.Int64, reflect.Int:
		return "l"
	case reflect.Float64:
		return "f"
	case reflect.Interface:
		return "x"
	case reflect.Pointer:
		return code(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "@"
		}
		return "[]" + code(t.Elem())
	case reflect.Map:
		return "{}" + code(t.Elem())
	case reflect.Struct:
		structure(t)
		return name(t)
	}
	panic("no code for " + t.String())
}

func structure(t reflect.Type) {
	if _, done := lines[name(t)]; done {
		return
	}
	lines[name(t)] = ""
	lines[name(t)] = strings.Join(fields(t), " ")
}

func fields(t reflect.Type) (all []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")[0]
		switch {
		case tag == "" && f.Anonymous:
			all = append(all, fields(f.Type)...)
		case tag != "-":
			all = append(all, tag+":"+code(f.Type))
		}
	}
	return all
}

func main() {
	for _, root := range []any{
		appsv1.Deployment{}, appsv1.StatefulSet{}, appsv1.ReplicaSet{}, appsv1.DaemonSet{}, batchv1.Job{}, corev1.Pod{},
		corev1.Service{}, corev1.PersistentVolumeClaim{}, autoscalingv1.HorizontalPodAutoscaler{},
		autoscalingv2.HorizontalPodAutoscaler{}, apiregistrationv1.APIService{}, apiregistrationv1beta1.APIService{},
	} {
		structure(reflect.TypeOf(root))
	}
	names := make([]string, 0, len(lines))
	for n := range lines {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Println(n, lines[n])
	}
}
