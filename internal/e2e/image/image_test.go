package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program is a file that stands for one.
func program(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func written(t *testing.T, o Options) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := Write(file, o); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTheSameProgramMakesTheSameBytes(t *testing.T) {
	t.Parallel()
	first := written(t, Options{Name: "localhost/greeter:1", Program: program(t, "greets")})
	again := written(t, Options{Name: "localhost/greeter:1", Program: program(t, "greets")})
	if !bytes.Equal(first, again) {
		t.Error("two images of one program differ")
	}
	other := written(t, Options{Name: "localhost/greeter:1", Program: program(t, "greets otherwise")})
	if bytes.Equal(first, other) {
		t.Error("images of two programs are the same")
	}
}

func TestAnImageHasTheProgramAloneAndSaysHowToRunIt(t *testing.T) {
	t.Parallel()
	files := unpack(t, written(t, Options{Name: "localhost/greeter:1", Program: program(t, "greets"), Args: []string{"--loud"}}))
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct {
		Config struct {
			Entrypoint, Cmd []string
			User            string
		}
	}
	blob := func(d descriptor) []byte { return files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)] }
	for _, of := range []struct {
		raw  func() []byte
		into any
	}{
		{func() []byte { return files["index.json"] }, &index},
		{func() []byte { return blob(index.Manifests[0]) }, &manifest},
		{func() []byte { return blob(manifest.Config) }, &config},
	} {
		if err := json.Unmarshal(of.raw(), of.into); err != nil {
			t.Fatal(err)
		}
	}
	if name := index.Manifests[0].Annotations["io.containerd.image.name"]; name != "localhost/greeter:1" {
		t.Errorf("its name is %q", name)
	}
	if c := config.Config; len(c.Entrypoint) != 1 || c.Entrypoint[0] != Path || len(c.Cmd) != 1 || c.Cmd[0] != "--loud" || c.User != "65532:65532" {
		t.Errorf("it is run as %+v", c)
	}
	if len(manifest.Layers) != 1 {
		t.Fatalf("it has the layers %v", manifest.Layers)
	}
	if layer := unpack(t, blob(manifest.Layers[0])); len(layer) != 1 || string(layer[Path[1:]]) != "greets" {
		t.Errorf("it has the files %q", layer)
	}
}

func TestAProgramThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "image.tar")
	err := Write(file, Options{Name: "localhost/greeter:1", Program: "/nowhere/greeter"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "localhost/greeter:1") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
