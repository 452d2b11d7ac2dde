package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The Python package is generated, installed and tested from nothing, as its
// README says, and clients of Go are generated and compiled.
func TestSoakClients(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	t.Run("python", func(t *testing.T) { testPython(t, l) })
	t.Run("go", func(t *testing.T) { testGenerated(t, l) })
}

func testPython(t *testing.T, l *lab) {
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("python3", "-m", "venv", venv).CombinedOutput(); err != nil {
		t.Skipf("no virtual environments of Python here: %v: %s", err, out)
	}
	source := filepath.Join(t.TempDir(), "sublet", "clients", "python")
	api := filepath.Join(source, "..", "..", "lease", "api")
	if err := os.MkdirAll(api, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"../clients/python": source, "../lease/api": api} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "PATH="+filepath.Join(venv, "bin")+":"+filepath.Dir(program)+":"+os.Getenv("PATH"), "SUBLET_RUN="+l.run)
	for _, line := range [][]string{
		{filepath.Join(venv, "bin", "pip"), "install", "-q", source + "[generate,test]"},
		{filepath.Join(source, "generate")},
		{filepath.Join(venv, "bin", "pip"), "install", "-q", "--force-reinstall", "--no-deps", source},
		{filepath.Join(venv, "bin", "mypy"), "--strict"},
		{filepath.Join(venv, "bin", "pytest"), "-q", filepath.Join(source, "tests")},
	} {
		// websockets 15 may wait for ever for its own thread when a server refuses over TLS.
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.Env, cmd.Dir = env, source
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil && line[1] == "install" && len(line) == 4 {
			t.Skipf("packages of Python cannot be had: %s", out)
		}
		if err != nil {
			t.Fatalf("%v: %v\n%s", line, err, out)
		}
	}
}

// generatedClient lists leases by the client that oapi-codegen makes.
const generatedClient = `package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", os.Args[1]) }
	client, err := NewClientWithResponses("http://sublet", WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: dial}}))
	if err != nil {
		panic(err)
	}
	answer, err := client.ListHostsWithResponse(context.Background())
	if err != nil || answer.JSON200 == nil {
		panic(fmt.Sprint(err, answer))
	}
	for _, host := range *answer.JSON200 {
		fmt.Println(*host.Name)
	}
}
`

func testGenerated(t *testing.T, l *lab) {
	dir := t.TempDir()
	run := func(argv ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
		return cmd.CombinedOutput()
	}
	description, err := filepath.Abs("../lease/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(generatedClient), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, argv := range [][]string{
		{"go", "mod", "init", "example.com/client"},
		{"go", "run", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.5.0", "-generate", "types,client", "-package", "main", "-o", "client.go", description},
		{"go", "mod", "tidy"},
		{"go", "build", "-o", "client", "."},
	} {
		out, err := run(argv...)
		if err != nil && (i == 1 || i == 2) {
			t.Skipf("the generator or what it needs cannot be had: %s", out)
		}
		if err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	if out, err := run("./client", filepath.Join(l.run, "api.sock")); err != nil || string(out) != "h1\nh2\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
