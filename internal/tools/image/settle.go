package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// saved is an image in a tar file, as `docker save` writes it and `docker load` reads.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// settle reads one saved image and writes it with the moment as the time of all.
func settle(in io.Reader, out io.Writer, moment time.Time) error {
	files, err := readAll(in)
	if err != nil {
		return err
	}
	var images []saved
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	if len(images) != 1 {
		return fmt.Errorf("%d images were saved: want one", len(images))
	}
	w := &writer{Writer: tar.NewWriter(out), moment: moment}
	image := images[0]
	var ids []string
	for i, name := range image.Layers {
		layer, err := settleLayer(files[name], moment)
		if err != nil {
			return fmt.Errorf("layer %s: %w", name, err)
		}
		image.Layers[i] = w.add(layer, ".tar")
		ids = append(ids, "sha256:"+digest(layer))
	}
	config, err := settleConfig(files[image.Config], ids, moment)
	if err != nil {
		return fmt.Errorf("%s: %w", image.Config, err)
	}
	image.Config = w.add(config, ".json")
	manifest, err := json.Marshal([]saved{image})
	if err != nil {
		return err
	}
	w.file("manifest.json", manifest)
	return errors.Join(w.err, w.Close())
}

func readAll(in io.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, err
		case h.Typeflag == tar.TypeReg:
			if files[h.Name], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
	}
}

// settleConfig changes what the engine wrote of itself, and keeps all else.
func settleConfig(raw []byte, layers []string, moment time.Time) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	for _, own := range []string{"container", "container_config", "docker_version"} {
		delete(config, own)
	}
	if c, ok := config["config"].(map[string]any); ok {
		delete(c, "Image") // an engine's id of the step before
	}
	config["created"] = moment.Format(time.RFC3339)
	config["rootfs"] = map[string]any{"type": "layers", "diff_ids": layers}
	steps, _ := config["history"].([]any)
	for _, step := range steps {
		if s, ok := step.(map[string]any); ok {
			s["created"] = moment.Format(time.RFC3339)
		}
	}
	return json.Marshal(config)
}

func settleLayer(raw []byte, moment time.Time) ([]byte, error) {
	var in io.Reader = bytes.NewReader(raw)
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = unzipped
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			err := w.Close() // which writes the end
			return out.Bytes(), err
		}
		if err != nil {
			return nil, err
		}
		plain := &tar.Header{
			Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode,
			Uid: h.Uid, Gid: h.Gid, ModTime: moment, Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(plain); err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, r); err != nil {
			return nil, err
		}
	}
}

// writer adds files until one fails.
type writer struct {
	*tar.Writer
	moment time.Time
	err    error
}

// add adds a file under the name that its content has.
func (w *writer) add(content []byte, ending string) (name string) {
	name = digest(content) + ending
	w.file(name, content)
	return name
}

func (w *writer) file(name string, content []byte) {
	if w.err != nil {
		return
	}
	h := &tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: w.moment, Format: tar.FormatPAX}
	if w.err = w.WriteHeader(h); w.err == nil {
		_, w.err = w.Write(content)
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
