// Package api has the parents and children of the benchmark in full, as a controller generator writes them.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of both kinds.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// AddToScheme registers both kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{}, &Part{}, &PartList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Widget is a parent.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec,omitempty"`
	Status            Status     `json:"status,omitempty"`
}

// WidgetSpec is what a parent asks for.
type WidgetSpec struct {
	Size int32  `json:"size,omitempty"`
	Text string `json:"text,omitempty"`
}

// Status is that of both kinds.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// WidgetList is a list of parents.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// Part is a child.
type Part struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PartSpec `json:"spec,omitempty"`
	Status            Status   `json:"status,omitempty"`
}

// PartSpec is what a child asks for.
type PartSpec struct {
	Settings map[string]string `json:"settings,omitempty"`
}

// PartList is a list of children.
type PartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Part `json:"items"`
}
