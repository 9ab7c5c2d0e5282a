package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

// The bundle's names, which the catalog and the annotations have too.
const (
	pkg     = "ticket-controller"
	channel = "stable"
	olm     = deploy + "/olm"
)

// object is a manifest, or a part of one.
type object = map[string]any

// at goes down the fields of a manifest, and answers the zero value where one is not
// there.
func at[T any](o any, path ...string) (v T) {
	for _, field := range path {
		m, _ := o.(object)
		o = m[field]
	}
	v, _ = o.(T)
	return v
}

// bundle leaves the bundle of the version that the manifests have in the folder made,
// and a catalog of it and of those before. A bundle of an earlier version stays as it
// is: it was released. It returns where the files belong.
func bundle(root, made string) (map[string]string, error) {
	stream, err := build(root, made, "overlays/olm")
	if err != nil {
		return nil, err
	}
	m := &manifests{all: map[string][]object{}}
	if err := m.add(stream); err != nil {
		return nil, err
	}
	for _, name := range []string{filepath.Join(made, madeDefinition), filepath.Join(root, deploy, "people.yaml")} {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := m.add(raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	r, err := newRelease(root, m)
	if err != nil {
		return nil, err
	}
	files, err := r.files(root, m)
	if err != nil {
		return nil, err
	}
	if files[olm+"/catalog/"+pkg+"/catalog.yaml"], err = r.catalog(root, files); err != nil {
		return nil, err
	}
	outputs := map[string]string{}
	for path, content := range files {
		name := strings.ReplaceAll(path, "/", "_")
		outputs[name] = path
		if err := os.WriteFile(filepath.Join(made, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return outputs, nil
}

// manifests are those that a bundle is made from, by kind.
type manifests struct{ all map[string][]object }

func (m *manifests) add(stream []byte) error {
	for document := range strings.SplitSeq("\n"+string(stream), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return err
		}
		if kind := at[string](o, "kind"); kind != "" {
			m.all[kind] = append(m.all[kind], o)
		}
	}
	return nil
}

// one is the only one of a kind.
func (m *manifests) one(kind string) (object, error) {
	if n := len(m.all[kind]); n != 1 {
		return nil, fmt.Errorf("there are %d of kind %s: want one", n, kind)
	}
	return m.all[kind][0], nil
}

// unbound are the roles of a kind that are given to nobody here: people's.
func (m *manifests) unbound(kind string) []object {
	return slices.DeleteFunc(slices.Clone(m.all[kind]), func(role object) bool { return len(m.bindings(role)) > 0 })
}

// bindings are those that give a role to somebody.
func (m *manifests) bindings(role object) (all []object) {
	for _, binding := range m.all[at[string](role, "kind")+"Binding"] {
		if at[string](binding, "roleRef", "name") == at[string](role, "metadata", "name") {
			all = append(all, binding)
		}
	}
	return all
}

// permissions are what the roles of a kind give to whom they are bound, in the form of
// a ClusterServiceVersion.
func (m *manifests) permissions(kind string) []any {
	var out []any
	for _, role := range m.all[kind] {
		for _, binding := range m.bindings(role) {
			subject := at[[]any](binding, "subjects")[0]
			out = append(out, object{"serviceAccountName": at[string](subject, "name"), "rules": role["rules"]})
		}
	}
	return out
}

// release is one version, and those before it, the oldest first.
type release struct {
	version string // as v0.2.0
	image   string
	before  []string
}

// newRelease takes the version from the image's tag.
func newRelease(root string, m *manifests) (release, error) {
	deployment, err := m.one("Deployment")
	if err != nil {
		return release{}, err
	}
	containers := at[[]any](deployment, "spec", "template", "spec", "containers")
	r := release{image: at[string](containers[0], "image")}
	if r.version = r.image[strings.LastIndex(r.image, ":")+1:]; !semver.IsValid(r.version) {
		return release{}, fmt.Errorf("the tag of image %s is no version as v1.2.3", r.image)
	}
	folders, err := filepath.Glob(filepath.Join(root, olm, "bundles", "v*"))
	if err != nil {
		return release{}, err
	}
	for _, folder := range folders {
		if v := filepath.Base(folder); semver.Compare(v, r.version) < 0 {
			r.before = append(r.before, v)
		}
	}
	semver.Sort(r.before)
	return r, nil
}

// name is a version's ClusterServiceVersion.
func name(version string) string { return pkg + "." + version }

func (r release) replaces() string {
	if len(r.before) == 0 {
		return ""
	}
	return name(r.before[len(r.before)-1])
}

// skipRange lets any version before be updated to this one in one step.
func (r release) skipRange() string {
	if len(r.before) == 0 {
		return ""
	}
	return fmt.Sprintf(">=%s <%s", r.before[0][1:], r.version[1:])
}

// files are those of the bundle, by where they belong.
func (r release) files(root string, m *manifests) (map[string][]byte, error) {
	csv, err := r.csv(root, m)
	if err != nil {
		return nil, err
	}
	definition, err := m.one("CustomResourceDefinition")
	if err != nil {
		return nil, err
	}
	contents := map[string]object{
		pkg + ".clusterserviceversion.yaml": csv,
		at[string](definition, "spec", "group") + "_" + at[string](definition, "spec", "names", "plural") + ".yaml": definition,
	}
	// OLM makes these as they are, in its namespace; a NetworkPolicy it does not know, but
	// for its newest versions.
	for _, o := range slices.Concat(m.all["PodDisruptionBudget"], m.all["PriorityClass"], m.unbound("ClusterRole")) {
		delete(at[object](o, "metadata"), "namespace")
		contents[strings.ToLower(at[string](o, "metadata", "name")+"."+at[string](o, "kind"))+".yaml"] = o
	}
	files := map[string][]byte{}
	folder := olm + "/bundles/" + r.version
	for name, o := range contents {
		if files[folder+"/manifests/"+name], err = yaml.Marshal(o); err != nil {
			return nil, err
		}
	}
	const prefix = "operators.operatorframework.io.bundle."
	files[folder+"/metadata/annotations.yaml"], err = yaml.Marshal(object{"annotations": object{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": pkg, prefix + "channels.v1": channel, prefix + "channel.default.v1": channel,
	}})
	return files, err
}

// csv is the ClusterServiceVersion.
func (r release) csv(root string, m *manifests) (object, error) {
	var said object
	raw, err := os.ReadFile(filepath.Join(root, olm, "operator.yaml"))
	if err == nil {
		err = yaml.Unmarshal(raw, &said)
	}
	if err != nil {
		return nil, err
	}
	icon, err := os.ReadFile(filepath.Join(root, olm, "icon.svg"))
	if err != nil {
		return nil, err
	}
	examples, err := samples(root)
	if err != nil {
		return nil, err
	}
	deployment, err := m.one("Deployment")
	if err != nil {
		return nil, err
	}
	owned, err := m.owned()
	if err != nil {
		return nil, err
	}
	annotations := at[object](said, "annotations")
	annotations["alm-examples"], annotations["containerImage"] = examples, r.image
	delete(said, "annotations")
	if r.replaces() != "" {
		said["replaces"], annotations["olm.skipRange"] = r.replaces(), r.skipRange()
	}
	said["version"] = r.version[1:]
	said["icon"] = []any{object{"base64data": base64.StdEncoding.EncodeToString(icon), "mediatype": "image/svg+xml"}}
	said["relatedImages"] = []any{object{"name": pkg, "image": r.image}}
	said["customresourcedefinitions"] = object{"owned": []any{owned}}
	said["install"] = object{"strategy": "deployment", "spec": object{
		"clusterPermissions": m.permissions("ClusterRole"),
		"permissions":        m.permissions("Role"),
		"deployments": []any{object{
			"name": at[string](deployment, "metadata", "name"), "label": at[object](deployment, "metadata", "labels"), "spec": deployment["spec"],
		}},
	}}
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": object{"name": name(r.version), "annotations": annotations},
		"spec":     said,
	}, nil
}

// samples are the sample Tickets, as a list in JSON.
func samples(root string) (string, error) {
	names, err := filepath.Glob(filepath.Join(root, deploy, "samples", "*.yaml"))
	if err != nil {
		return "", err
	}
	var all []object
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		var o object
		if err := yaml.Unmarshal(raw, &o); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, o)
	}
	list, err := json.MarshalIndent(all, "", "  ")
	return string(list), err
}
