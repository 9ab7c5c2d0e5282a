package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

var moment = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// engine is an image as an engine saves it that worked at a moment.
func engine(t *testing.T, at time.Time, container string) *bytes.Buffer {
	t.Helper()
	pack := func(files map[string]string, order ...string) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, name := range order {
			if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o755, ModTime: at}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(files[name])); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	layer := pack(map[string]string{"program": "#!"}, "program")
	config := `{"created":"` + at.Format(time.RFC3339) + `","container":"` + container + `","config":{"User":"65532:65532","Image":"sha256:` + container + `"},
		"history":[{"created":"` + at.Format(time.RFC3339) + `","created_by":"COPY"}],"rootfs":{"type":"layers","diff_ids":["sha256:` + digest(layer) + `"]}}`
	return bytes.NewBuffer(pack(map[string]string{
		"manifest.json": `[{"Config":"c.json","RepoTags":["a:1"],"Layers":["l/layer.tar"]}]`, "c.json": config, "l/layer.tar": string(layer),
	}, "c.json", "l/layer.tar", "manifest.json"))
}

func TestTheSameContentIsTheSameImageWheneverItWasBuilt(t *testing.T) {
	t.Parallel()
	var one, two bytes.Buffer
	if err := settle(engine(t, moment.Add(time.Hour), "c1"), &one, moment); err != nil {
		t.Fatal(err)
	}
	if err := settle(engine(t, moment.Add(time.Minute), "c2"), &two, moment); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("two builds of the same differ")
	}
	files, err := readAll(&one)
	if err != nil {
		t.Fatal(err)
	}
	var images []saved
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil {
		t.Fatal(err)
	}
	config := string(files[images[0].Config])
	for _, kept := range []string{`"User":"65532:65532"`, `"created":"2026-12-01T00:00:00Z"`, digest(files[images[0].Layers[0]])} {
		if !strings.Contains(config, kept) {
			t.Errorf("the config lacks %s:\n%s", kept, config)
		}
	}
}

func TestTwoImagesAreRefused(t *testing.T) {
	t.Parallel()
	var in bytes.Buffer
	w := tar.NewWriter(&in)
	content := `[{},{}]`
	if err := w.WriteHeader(&tar.Header{Name: "manifest.json", Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := settle(&in, &bytes.Buffer{}, moment); err == nil || !strings.Contains(err.Error(), "2 images") {
		t.Errorf("%v", err)
	}
}

func TestTheRootsAreMany(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run([]string{"roots"}, nil, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("there are %d", n)
	}
}
