package api

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies a status.
func (in *Status) DeepCopyInto(out *Status) {
	*out = *in
	out.Conditions = slices.Clone(in.Conditions)
}

// DeepCopyInto copies a parent.
func (in *Widget) DeepCopyInto(out *Widget) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopy copies a parent.
func (in *Widget) DeepCopy() *Widget {
	out := new(Widget)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies a parent.
func (in *Widget) DeepCopyObject() runtime.Object { return in.DeepCopy() }

// DeepCopyObject copies a list of parents.
func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: in.TypeMeta, Items: make([]Widget, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

// DeepCopyInto copies a child.
func (in *Part) DeepCopyInto(out *Part) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Settings = maps.Clone(in.Spec.Settings)
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject copies a child.
func (in *Part) DeepCopyObject() runtime.Object {
	out := new(Part)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies a list of children.
func (in *PartList) DeepCopyObject() runtime.Object {
	out := &PartList{TypeMeta: in.TypeMeta, Items: make([]Part, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
