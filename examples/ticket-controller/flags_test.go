package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func none(string) string { return "" }

func TestFlagsAndTheirEnvironmentSayTheSame(t *testing.T) {
	t.Parallel()
	args := []string{
		"--kubeconfig", "k", "--context", "c", "--namespace", "a, b", "--booking-url", "https://x.example", "--booking-token-file", "t",
		"--workers", "7", "--leader-elect", "--lease-namespace", "l", "--lease-duration", "3s", "--health-addr", ":1", "--metrics-addr", ":2",
		"--stop-timeout", "4s", "--call-timeout", "5s", "--settle", "6s", "--poll", "7s", "--booking-rate", "2.5", "--cluster-id", "i", "--embedded", "always", "--data-dir", "d", "--log-format", "json", "-v", "2",
	}
	byFlag, err := parse(args, none)
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		kubeconfig: "k", context: "c", namespaces: []string{"a", "b"}, bookingURL: "https://x.example", bookingTokenFile: "t",
		workers: 7, leaderElect: "true", leaseNamespace: "l", leaseDuration: 3 * time.Second, healthAddr: ":1", metricsAddr: ":2",
		stopTimeout: 4 * time.Second, callTimeout: 5 * time.Second, settle: 6 * time.Second, poll: 7 * time.Second, bookingRate: 2.5, clusterID: "i", embedded: "always", dataDir: "d", logFormat: "json", verbosity: 2,
	}
	if d := cmp.Diff(want, byFlag, cmp.AllowUnexported(settings{})); d != "" {
		t.Errorf("flags (-want +got):\n%s", d)
	}
	env := map[string]string{}
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		value := args[i+1]
		if strings.HasPrefix(value, "-") {
			value = "true"
		}
		env["TICKET_CONTROLLER_"+strings.ToUpper(strings.ReplaceAll(strings.TrimLeft(arg, "-"), "-", "_"))] = value
	}
	byEnv, err := parse(nil, func(name string) string { return env[name] })
	if d := cmp.Diff(want, byEnv, cmp.AllowUnexported(settings{})); err != nil || d != "" {
		t.Errorf("environment: %v (-want +got):\n%s", err, d)
	}
	env["TICKET_CONTROLLER_WORKERS"] = "nonsense"
	if s, err := parse(args, func(name string) string { return env[name] }); err != nil || s.workers != 7 {
		t.Errorf("a flag does not win over its variable: %v, %v", s.workers, err)
	}
}

func TestWhatIsWrongWithACommandLineIsNamed(t *testing.T) {
	t.Parallel()
	good := []string{"--booking-url", "http://127.0.0.1:1", "--booking-token-file", "t"}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--embedded", "never"}, []string{"--booking-url is missing", "booking-server"}},
		{[]string{"--embedded", "always", "--booking-token-file", "t"}, []string{"--booking-url is missing"}},
		{append([]string{"--embedded", "never", "--data-dir", "d"}, good...), []string{"--data-dir", "--embedded=never"}},
		{[]string{"--embedded", "perhaps"}, []string{"embedded", `"perhaps"`, "auto, always, never"}},
		{[]string{"--log-format", "xml"}, []string{"log-format", `"xml"`, "text, json"}},
		{good[:2], []string{"--booking-token-file is missing"}},
		{[]string{"--booking-url", "ftp://x"}, []string{"booking-url", "ftp://x", "https://api.example.com"}},
		{append([]string{"--workers", "0"}, good...), []string{"workers", `"0"`, "at least 1"}},
		{append([]string{"--namespace", "Bad_NS"}, good...), []string{"namespace", `"Bad_NS"`, "as default"}},
		{append([]string{"--settle", "-1s"}, good...), []string{"settle", "positive duration"}},
		{append([]string{"--settle", "1s"}, good...), []string{"--settle 1s", "--call-timeout 30s", "longer"}},
		{append([]string{"--booking-rate", "0"}, good...), []string{"booking-rate", `"0"`, "from 0.1 to 10000"}},
		{append([]string{"--booking-rate", "NaN"}, good...), []string{"booking-rate", `"NaN"`}},
		{append([]string{"--namespace", "a,a"}, good...), []string{"namespace", "twice"}},
		{append([]string{"--cluster-id", "x y"}, good...), []string{"cluster-id", `"x y"`}},
		{append([]string{"--former-cluster-ids", "x,y z"}, good...), []string{"former-cluster-ids", `"y z"`}},
		{append([]string{"--booking-url", "http://x.example/v1/"}, good[2:]...), []string{"booking-url", "leave it off"}},
		{append([]string{"--allow-adopt=perhaps"}, good...), []string{"allow-adopt", "neither true nor false"}},
		{append([]string{"--leader-elect=perhaps"}, good...), []string{"leader-elect", "neither true nor false"}},
		{append([]string{"--leader-elect", "false"}, good...), []string{"false", "with =", "--leader-elect=false"}},
		{append([]string{"--cluster-id", ""}, good...), []string{"cluster-id", "it is empty", "leave the flag off"}},
		{append([]string{"--health-addr", "8080"}, good...), []string{"health-addr", `"8080"`, "host and port"}},
		{append([]string{"--metrics-addr", "localhost:99999"}, good...), []string{"metrics-addr", `"localhost:99999"`}},
		{[]string{"backup", "--file", "-"}, []string{"--file -", "no stream", "name a file"}},
		{[]string{"version", "extra"}, []string{"version", `"extra"`, "no arguments"}},
		{append([]string{"--token", "secret"}, good...), []string{"token"}},
		{append(good, "run"), []string{`"run"`, "booking-server"}},
	} {
		var stdout, stderr strings.Builder
		if code := dispatch(t.Context(), c.args, &stdout, &stderr, none, new(lastActs).add); code != 2 {
			t.Errorf("%v: exit status %d, want 2", c.args, code)
		}
		for _, w := range append(c.want, "--help") {
			if !strings.Contains(stderr.String(), w) {
				t.Errorf("%v: %q lacks %q", c.args, stderr.String(), w)
			}
		}
	}
}

func TestHelpNamesEveryFlagItsDefaultAndItsVariable(t *testing.T) {
	t.Parallel()
	var stdout strings.Builder
	if code := dispatch(t.Context(), []string{"help"}, &stdout, io.Discard, none, new(lastActs).add); code != 0 {
		t.Fatalf("exit status %d", code)
	}
	for _, o := range options() {
		value := " " + o.value
		if o.value == boolean {
			value = "[=BOOL]"
		}
		for _, w := range []string{"--" + o.name + value, o.help, "$" + o.env()} {
			if !strings.Contains(stdout.String(), w) {
				t.Errorf("the help lacks %q", w)
			}
		}
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: one, context: {cluster: c, user: u}}, {name: broken, context: {cluster: nowhere, user: u}}]
`

func TestACluserIsFoundOrItIsSaidWhereItWasLookedFor(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, current := write("plain", kubeconfig), write("current", kubeconfig+"current-context: one\n")
	garbage := write("garbage", "{nonsense")
	home := filepath.Dir(filepath.Dir(write("home/.kube/config", kubeconfig+"current-context: one\n")))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct {
		name      string
		s         settings
		env, home string
		want      []string // in the error; none: it is found
	}{
		{"flag", settings{kubeconfig: current}, garbage, home, nil},
		{"variable", settings{}, current, home, nil},
		{"home", settings{}, "", home, nil},
		{"context", settings{kubeconfig: plain, context: "one"}, "", "", nil},
		{"nothing", settings{}, "", filepath.Join(dir, "empty"), []string{"no cluster is configured", "--kubeconfig", "$KUBECONFIG", "pod", "run ./cluster"}},
		{"flag, no file", settings{kubeconfig: filepath.Join(dir, "no")}, current, home, []string{"--kubeconfig", "no such file", "run ./cluster"}},
		{"variable, no file", settings{}, filepath.Join(dir, "no"), home, []string{"$KUBECONFIG", "no such file", "unset it"}},
		{"garbage", settings{}, garbage, home, []string{"$KUBECONFIG", garbage, "cannot be read"}},
		{"no context of that name", settings{kubeconfig: current, context: "two"}, "", "", []string{"--context two", "broken, one"}},
		{"no current context", settings{kubeconfig: plain}, "", "", []string{"current-context", "--context"}},
		{"a context without a cluster", settings{kubeconfig: plain, context: "broken"}, "", "", []string{plain}},
	} {
		k, err := findCluster(c.s, func(string) string { return c.env }, c.home)
		if len(c.want) == 0 {
			if err != nil || k.config.Host != "https://127.0.0.1:6443" || k.inPod {
				t.Errorf("%s: %+v, %v", c.name, k, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: it was found", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", c.name, err, w)
			}
		}
	}
}

func TestWhyTheBookingAPIIsNotReachedIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config, missing := put("config", kubeconfig+"current-context: one\n"), filepath.Join(dir, "missing")
	for token, want := range map[string]string{
		missing:               "--booking-token-file: token file: open " + missing + ": no such file or directory",
		put("empty", ""):      "empty is empty: write the bearer token",
		put("token", "token"): "no connection: connect: connection refused",
	} {
		var stderr strings.Builder
		args := []string{"orphans", "--kubeconfig", config, "--cluster-id", "x", "--booking-url", "http://127.0.0.1:1", "--booking-token-file", token}
		if code := dispatch(t.Context(), args, io.Discard, &stderr, none, new(lastActs).add); code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("exit status %d, and %q lacks %q", code, stderr.String(), want)
		}
	}
}

func TestAPodWithoutATokenIsNamed(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	_, err := findCluster(settings{}, none, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "ServiceAccount token") {
		t.Fatalf("got %v", err)
	}
}

func TestTheSecondSignalEndsTheProcess(t *testing.T) {
	codes := make(chan int, 1)
	ctx, stop := onSignal(context.Background(), func(code int) { codes <- code })
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := <-codes; code == 0 {
		t.Fatal("it ends with 0")
	}
}
