// Command controllers measures Sublet's controller beside others that run here, as
// Li's thesis (chapter 4) measured seven: by switches, threads, full buffers, part of
// the load, fairness, newcomers and over a long run. All are up at once in a network
// namespace and measured in turn, the generator on processor 0 and they on 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sublet/bench/harness"
	"sublet/measure/ofload"
)

var (
	rounds  = flag.Int("rounds", 3, "rounds, interleaved")
	window  = flag.Duration("window", time.Second, "how long one load is counted")
	only    = flag.String("only", "", "experiments whose names match a regular expression")
	packets = flag.Int("packets", 1_000_000, "packets of the long run")
)

func main() { harness.Main("openflow/controllers", run) }

// experiments by the names of the table that has what was published.
var experiments = []struct {
	name string
	do   func(*bench) error
}{
	{"a real switch", (*bench).realSwitch},
	{"one switch", (*bench).oneSwitch},
	{"switches", (*bench).switches},
	{"versions", (*bench).versions},
	{"threads", (*bench).threads},
	{"full buffers", (*bench).fullBuffers},
	{"part of the load", (*bench).partOfTheLoad},
	{"fairness", (*bench).fairness},
	{"long run", (*bench).longRun},
}

type bench struct {
	ctx   context.Context
	exe   string // sublet
	peers []*peer
}

func run(ctx context.Context, exe string) error {
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // programs that it starts are in its network namespace
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace: %w", err)
	}
	if err := harness.Commands("ip link set lo up"); err != nil {
		return err
	}
	b := &bench{ctx: ctx, exe: exe}
	defer b.stop()
	if err := b.start(); err != nil {
		return err
	}
	fmt.Printf("%s; %d rounds of %s\n", harness.Machine(), *rounds, *window)
	for _, e := range experiments {
		if pattern.MatchString(e.name) {
			fmt.Printf("\n%s\n\n", e.name)
			if err := e.do(b); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	return nil
}

// answer is what `sublet bench openflow -o json` prints, as far as tables have it.
type answer struct {
	ofload.Result
	PerCPU float64 `json:"responses_per_cpu_s"`
}

// load loads a controller; words are more flags of `sublet bench openflow`.
func (b *bench) load(p *peer, words ...string) (a answer, err error) {
	args := append([]string{"-c", "0", b.exe, "bench", "openflow", "-o", "json", "--connect", "tcp:" + p.address(),
		"--pid", strconv.Itoa(p.pid()), "--duration", window.String(), "--warmup", "300ms"}, words...)
	out, err := exec.CommandContext(b.ctx, "taskset", args...).Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return a, fmt.Errorf("%s: %w: %s", p.name, err, exit.Stderr)
	case err != nil:
		return a, fmt.Errorf("%s: %w", p.name, err)
	}
	return a, json.Unmarshal(out, &a)
}

// figures are samples by what was loaded and what was measured.
type figures map[string]harness.Samples

// each loads all controllers that take so many switches, in turn and in rounds.
func (b *bench) each(switches int, take func(p *peer, a answer), words ...string) error {
	words = append([]string{"--switches", strconv.Itoa(switches)}, words...)
	for range *rounds {
		for _, p := range b.peers {
			if p.most > 0 && switches > p.most {
				continue
			}
			a, err := b.load(p, words...)
			if err != nil {
				return err
			}
			take(p, a)
		}
	}
	return nil
}
