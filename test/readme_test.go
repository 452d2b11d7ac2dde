package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The README's five minutes, command by command.
func TestReadmeFiveMinutes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Five minutes")
	_, block, _ := strings.Cut(rest, "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	l := &lab{t: t, run: shortDir(t)}
	t.Cleanup(func() { l.sublet("lab", "down") })
	before := census(l.run)
	ran := 0
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "sublet" {
			continue
		}
		l.typed(words[1:])
		ran++
	}
	if ran < 7 {
		t.Errorf("only %d commands of the README were run", ran)
	}
	if diff := difference(before, census(l.run)); diff != "" {
		t.Errorf("left on the machine, or gone from it:\n%s", diff)
	}
}

// typed runs a command as typed in the repository's folder; a capture is
// ended by Ctrl-C.
func (l *lab) typed(words []string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	if words[0] == "capture" {
		words[len(words)-1] = filepath.Join(filepath.Dir(l.run), "capture.pcapng")
	}
	args := append([]string{"--run", l.run}, words...)
	if words[0] == "lab" && words[1] == "up" {
		args = append(args, "--name", labName(l.run))
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = ".."
	if words[0] == "capture" {
		interrupt := time.AfterFunc(time.Second, func() { _ = cmd.Process.Signal(os.Interrupt) })
		defer interrupt.Stop()
	}
	if r := runCommand(cmd); r.code != 0 {
		l.t.Fatalf("sublet %s: exit code %d\n%s%s", strings.Join(words, " "), r.code, r.out, r.err)
	}
}
