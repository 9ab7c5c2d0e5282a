// Package image writes container images: one static program and nothing else, in
// the layout that OCI specifies, as a tar archive that containerd imports. The
// same program makes the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
)

// Options say what an image is.
type Options struct {
	// Name is what pods call it, with a tag: localhost/greeter:1.
	Name string
	// Program is the path of a static executable, which stands in the image as
	// its only file, /app.
	Program string
	// Args are given to it where a pod says nothing else.
	Args []string
	// User runs it, as numbers. [65532:65532]
	User string
}

// Path is where the program stands in an image.
const Path = "/app"

const (
	layerType    = "application/vnd.oci.image.layer.v1.tar"
	configType   = "application/vnd.oci.image.config.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// A descriptor is how one blob of an image names another.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// Write writes the image to a file.
func Write(file string, o Options) error {
	program, err := os.ReadFile(o.Program)
	if err != nil {
		return fmt.Errorf("the program of the image %s: %w", o.Name, err)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(f, o, program); err != nil {
		f.Close()
		return fmt.Errorf("writing the image %s: %w", o.Name, err)
	}
	return f.Close()
}

func write(w io.Writer, o Options, program []byte) error {
	if o.User == "" {
		o.User = "65532:65532"
	}
	layer, err := layerOf(program)
	if err != nil {
		return err
	}
	here := platform{Architecture: runtime.GOARCH, OS: "linux"}
	l := &layout{tar: tar.NewWriter(w)}
	layerRef := l.blob(layerType, layer)
	config := l.json(configType, map[string]any{
		"architecture": here.Architecture, "os": here.OS,
		"config": map[string]any{"Entrypoint": []string{Path}, "Cmd": o.Args, "User": o.User, "WorkingDir": "/"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerRef.Digest}},
	})
	manifest := l.json(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{layerRef},
	})
	manifest.Platform = &here
	manifest.Annotations = map[string]string{"io.containerd.image.name": o.Name}
	l.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{manifest},
	})
	if err != nil {
		return err
	}
	l.file("index.json", index)
	if l.err != nil {
		return l.err
	}
	return l.tar.Close()
}

// layerOf is the image's only layer, as an archive.
func layerOf(program []byte) ([]byte, error) {
	var layer bytes.Buffer
	l := &layout{tar: tar.NewWriter(&layer)}
	l.file(Path[1:], program)
	if l.err != nil {
		return nil, l.err
	}
	err := l.tar.Close() // before the bytes: it writes the last ones
	return layer.Bytes(), err
}

// layout writes files of an archive, until one fails.
type layout struct {
	tar *tar.Writer
	err error
}

func (l *layout) file(name string, content []byte) {
	if l.err != nil {
		return
	}
	l.err = l.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Format: tar.FormatUSTAR})
	if l.err == nil {
		_, l.err = l.tar.Write(content)
	}
}

func (l *layout) blob(mediaType string, content []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	l.file("blobs/sha256/"+sum, content)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

func (l *layout) json(mediaType string, value any) descriptor {
	content, err := json.Marshal(value)
	if l.err == nil {
		l.err = err
	}
	return l.blob(mediaType, content)
}
