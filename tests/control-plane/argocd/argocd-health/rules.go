package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/settings"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

const namespace = "argocd"

func rules(path string) (lua.ResourceHealthOverrides, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return folder(path)
	}
	return configMap(path)
}

// <group>/<Kind>/health.lua; `_` stands for `*`, and a folder right below the root is a kind of the core group.
func folder(root string) (lua.ResourceHealthOverrides, error) {
	overrides := lua.ResourceHealthOverrides{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "health.lua" {
			return err
		}
		script, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		key = strings.ReplaceAll(filepath.ToSlash(key), "_", "*")
		overrides[key] = v1alpha1.ResourceOverride{HealthLua: string(script), UseOpenLibs: true}
		return nil
	})
	return overrides, err
}

// What Argo CD itself reads in a ConfigMap argocd-cm with this data.
func configMap(path string) (lua.ResourceHealthOverrides, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := corev1.ConfigMap{}
	if err := yaml.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	if len(read.Data) == 0 {
		return nil, fmt.Errorf("it is no ConfigMap with data")
	}
	part := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	meta := metav1.ObjectMeta{Name: "argocd-cm", Namespace: namespace, Labels: part}
	secret := metav1.ObjectMeta{Name: "argocd-secret", Namespace: namespace, Labels: part}
	client := fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: meta, Data: read.Data},
		&corev1.Secret{ObjectMeta: secret, Data: map[string][]byte{"server.secretkey": []byte("unused")}},
	)
	return settings.NewSettingsManager(context.Background(), client, namespace).GetResourceOverrides()
}
