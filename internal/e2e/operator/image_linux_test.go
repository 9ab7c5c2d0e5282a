package operator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tetherkube/tether/internal/e2e/controlplane"
	"github.com/tetherkube/tether/internal/e2e/process"
)

// clone is the commit that is checked out, in a folder of its own.
func clone(t *testing.T) (dir, revision string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "clone")
	for _, args := range [][]string{{"clone", "--quiet", root, dir}, {"-C", dir, "rev-parse", "HEAD"}} {
		out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
		revision = strings.TrimSpace(string(out))
	}
	return dir, revision
}

// build builds the image, and returns its id.
func (e *engine) build(t *testing.T, dir, name string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // the first time, all is compiled
	defer cancel()
	out, err := e.command(ctx, filepath.Join(dir, "examples", "ticket-controller", "deploy", "image", "build.sh"), name)
	if err != nil {
		t.Fatal(err)
	}
	return out[strings.LastIndex(out, "\n")+1:]
}

const mostMegabytes = 20

func TestTheImage(t *testing.T) {
	e, registry := startEngine(t), startRegistry(t)
	dir, revision := clone(t)
	name := registry + "/ticket-controller:v1.2.3"
	id := e.build(t, dir, name)

	t.Run("is the same to the last byte when it is built again, elsewhere", func(t *testing.T) {
		e.must(t, "image", "prune", "--all", "--force") // no step is remembered
		other, _ := clone(t)
		if again := e.build(t, other, name); again != id {
			t.Errorf("it is %s, and was %s", again, id)
		}
	})
	t.Run("says what it is, and has nothing but the program and the authorities", func(t *testing.T) {
		said := e.must(t, "image", "inspect", "--format", `{{.Config.User}} {{.Config.Entrypoint}} {{index .Config.Labels "org.opencontainers.image.revision"}} {{index .Config.Labels "org.opencontainers.image.version"}}`, name)
		if want := "65532:65532 [/ticket-controller] " + revision + " v1.2.3"; said != want {
			t.Errorf("it says %q, want %q", said, want)
		}
		out := e.must(t, "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", name, "version")
		for _, words := range []string{"ticket-controller v1.2.3\n", "commit     " + revision + "\n", "go         go1.", "kubernetes v1.37.2"} {
			if !strings.Contains(out+"\n", words) {
				t.Errorf("version lacks %q:\n%s", words, out)
			}
		}
		if _, err := e.docker(t.Context(), "run", "--rm", "--network", "none", "--entrypoint", "/bin/sh", name); err == nil {
			t.Error("there is a shell")
		}
	})
	t.Run("has the files that its other Dockerfile builds inside", func(t *testing.T) {
		e.must(t, "create", "--name", "looked-into", name)
		inside := t.TempDir()
		for file, made := range firstStage(t, dir, "v1.2.3") {
			e.must(t, "cp", "looked-into:"+file, inside)
			got, err := os.ReadFile(filepath.Join(inside, filepath.Base(file)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, made) {
				t.Errorf("%s is another: %d bytes, and %d", file, len(got), len(made))
			}
		}
		e.must(t, "rm", "looked-into")
	})
	t.Run("goes to a registry and comes back", func(t *testing.T) {
		end := e.admit(t, registry)
		e.must(t, "push", "--quiet", name)
		e.must(t, "image", "prune", "--all", "--force")
		e.must(t, "pull", "--quiet", name)
		end()
		if pulled := e.must(t, "image", "inspect", "--format", "{{.Id}}", name); pulled != id {
			t.Errorf("what came is %s, what went was %s", pulled, id)
		}
		if megabytes := compressed(t, registry); megabytes > mostMegabytes {
			t.Errorf("it has %.1f MB compressed, want at most %d", megabytes, mostMegabytes)
		} else {
			t.Logf("compressed it has %.1f MB", megabytes)
		}
	})
	t.Run("books as a container, and goes on when its token is another", func(t *testing.T) { contained(t, e, name) })
}

// firstStage runs, outside of any engine, what the first stage of the Dockerfile for
// engines that can pull runs, and returns what it leaves by where the image has it.
func firstStage(t *testing.T, dir, version string) map[string][]byte {
	t.Helper()
	first, _ := stages(t, "Dockerfile.multistage")
	_, command, found := strings.Cut(first, "\nRUN ")
	if !found {
		t.Fatalf("it runs nothing:\n%s", first)
	}
	command = strings.ReplaceAll(command, "\\\n", " ")
	files := map[string]string{"/ticket-controller": "", "/etc/ssl/certs/ca-certificates.crt": ""}
	out := t.TempDir()
	for file := range files { // it leaves all at the root
		files[file] = filepath.Join(out, filepath.Base(file))
		command = strings.ReplaceAll(command, " /"+filepath.Base(file), " "+files[file])
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", command)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "VERSION="+version)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, text)
	}
	made := map[string][]byte{}
	for file, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		made[file] = raw
	}
	return made
}

// compressed is the size of what is pulled.
func compressed(t *testing.T, registry string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+registry+"/v2/ticket-controller/manifests/v1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json")
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var manifest struct{ Layers []struct{ Size int } }
	if err := json.NewDecoder(res.Body).Decode(&manifest); err != nil || len(manifest.Layers) == 0 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	sum := 0
	for _, l := range manifest.Layers {
		sum += l.Size
	}
	return float64(sum) / 1e6
}

// mount is a folder as the kubelet makes one of a projected volume: all files change
// at once, by one link.
type mount struct{ dir string }

func (m mount) put(t *testing.T, version string, files map[string]string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(m.dir, version), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.dir, version, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(m.dir, name)) // the second time it is there
	}
	draft := filepath.Join(m.dir, "..draft")
	if err := os.Symlink(version, draft); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, filepath.Join(m.dir, "..data")); err != nil {
		t.Fatal(err)
	}
}

// token makes a token that is revoked when the Secret goes, as a pod's own is when the
// pod does.
func token(t *testing.T, secret string) string {
	t.Helper()
	made, err := core.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(600)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: secret, UID: made.UID},
	}}
	answer, err := core.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "ticket-controller", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// contained runs the container as the pod of install.yaml is, in a network in which
// there are the API server and the booking server alone.
func contained(t *testing.T, e *engine, image string) {
	noLease(t)
	c, toSite := newController(t)
	api := strings.TrimPrefix(cluster.URL(), "https://")
	e.admit(t, api)
	e.admit(t, strings.TrimPrefix(toSite.URL(), "http://"))

	old := token(t, "first")
	access, booking := mount{t.TempDir()}, mount{t.TempDir()}
	files := map[string]string{"token": old, "ca.crt": string(cluster.RESTConfig().CAData), "namespace": namespace}
	access.put(t, "..1", files)
	booking.put(t, "..1", map[string]string{"token": "token-of-the-tests"})
	for _, m := range []mount{access, booking} { // t.TempDir is this user's alone
		for _, dir := range []string{m.dir, filepath.Dir(m.dir)} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, port, _ := strings.Cut(api, ":")
	pod := find[appsv1.Deployment](t, unit(t), "Deployment", "ticket-controller").Spec.Template.Spec
	begin := time.Now()
	e.must(t, append([]string{
		"run", "--detach", "--name", "controller", "--network", "host", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--memory", fmt.Sprint(pod.Containers[0].Resources.Limits.Memory().Value()),
		"--volume", access.dir + ":/var/run/secrets/kubernetes.io/serviceaccount:ro", "--volume", booking.dir + ":/etc/booking:ro",
		"--env", "KUBERNETES_SERVICE_HOST=127.0.0.1", "--env", "KUBERNETES_SERVICE_PORT=" + port,
		"--env", "TICKET_CONTROLLER_BOOKING_URL=" + toSite.URL(), image,
	}, pod.Containers[0].Args...)...)
	logs, err := followLogs(e)
	if err != nil {
		t.Fatal(err)
	}
	c.Process = logs
	t.Cleanup(func() {
		if _, err := e.docker(t.Context(), "rm", "--force", "controller"); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the container's last lines:\n%s", logs.Log().Tail(40))
		}
		if err := logs.Kill(); err != nil {
			t.Error(err)
		}
	})
	c.line(t, "controllers run")
	t.Logf("from docker run to work took %v", time.Since(begin).Round(time.Millisecond))
	if err := c.life(patiently(t, "a life"), tickets(t)); err != nil {
		t.Fatal(err)
	}

	files["token"] = token(t, "second")
	access.put(t, "..2", files)
	// The old one is good until the new one is in use: client-go reads the file once a
	// minute, and the kubelet replaces a token of ten minutes two minutes before its end.
	used(t, files["token"])
	if err := core.CoreV1().Secrets(namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	revoked(t, old)
	if err := c.life(patiently(t, "a life with another token"), tickets(t)); err != nil {
		t.Fatal(err)
	}
	if state := e.must(t, "inspect", "--format", "{{.State.Running}} {{.RestartCount}} {{.State.OOMKilled}}", "controller"); state != "true 0 false" {
		t.Errorf("the container is %s", state)
	}
	e.must(t, "stop", "controller")
	if code := e.must(t, "inspect", "--format", "{{.State.ExitCode}}", "controller"); code != "0" {
		t.Errorf("it ended with %s", code)
	}
}

// used waits until the API server's record has a request with the token.
func used(t *testing.T, token string) {
	t.Helper()
	var claims struct {
		ID string `json:"jti"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	audit, err := cluster.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = audit.WaitFor(patiently(t, "the new token"), 1, func(r controlplane.Request) bool {
		return r.Object.Resource == "leases" && slices.Contains(r.User.Extra["authentication.kubernetes.io/credential-id"], "JTI="+claims.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// revoked waits until the API server, which remembers for some seconds whom it has
// seen, refuses a token.
func revoked(t *testing.T, token string) {
	t.Helper()
	ctx := patiently(t, "the token to be refused")
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := core.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !answer.Status.Authenticated {
			return
		}
		<-tick.C
	}
}

// followLogs follows what the container writes.
func followLogs(e *engine) (*process.Process, error) {
	path, err := exec.LookPath("docker")
	if err != nil {
		return nil, err
	}
	return process.Start(process.Options{Path: path, Args: []string{"logs", "--follow", "controller"}, Env: append(os.Environ(), "DOCKER_HOST="+e.socket)})
}
