package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sublet/bench/harness"
	"sublet/lab/guest"
)

// machinePairs are the same links to a machine and to a namespace on its host.
const machinePairs = `network: machines
nodes:
  - {name: m, kind: vm, image: measured.raw, cpu: 1, memory: 512MiB, disk: 64MiB}
  - {name: n, run: [{cmd: [iperf3, -s], ready: 5201}]}
  - {name: pm}
  - {name: pn}
links:
  - {ends: [m, pm], rate: %dMbit}
  - {ends: [n, pn], rate: %[1]dMbit}
`

// machineRates of the links, in Mbit/s.
var machineRates = []int{10, 100, 1000}

// machines compares what nodes get over the same links from a machine and from a
// namespace, in turn: no probe of check's runs in a machine.
func machines(ctx context.Context, exe, dir string) error {
	if *machineRounds == 0 {
		return nil
	}
	images := filepath.Join(dir, "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	err := guest.MakeDisk(filepath.Join(images, "measured.raw"), "iperf3")
	var lacks *guest.LackError
	if errors.As(err, &lacks) {
		fmt.Printf("machines are not measured: %v\n", err)
		return nil
	}
	t := harness.Table{Head: []string{"the same link", "to a namespace", "to a machine", "ratio"}}
	for _, rate := range machineRates {
		if err == nil {
			err = machinesAt(ctx, exe, dir, rate, &t)
		}
	}
	if err == nil {
		t.Print(os.Stdout)
	}
	return err
}

func machinesAt(ctx context.Context, exe, dir string, rate int, t *harness.Table) error {
	return inLab(ctx, exe, dir, func(run string, lab runner) error {
		request := filepath.Join(dir, "machines.yaml")
		if err := os.WriteFile(request, fmt.Appendf(nil, machinePairs, rate), 0o600); err != nil {
			return err
		}
		if _, err := lab("up", request); err != nil {
			return err
		}
		if err := serve(ctx, exe, run); err != nil {
			return err
		}
		for _, f := range machineFigures {
			var found [2]harness.Samples
			for range *machineRounds {
				for i, node := range []string{"n", "m"} {
					text, err := lab(append([]string{"exec", "machines/p" + node, "--"}, f.argv(node, rate)...)...)
					if err != nil {
						return err
					}
					figure, err := f.read(text)
					if err != nil {
						return fmt.Errorf("%s of %s: %w: %s", f.what, node, err, text)
					}
					found[i] = append(found[i], figure)
				}
			}
			t.Add(fmt.Sprintf("%d Mbit/s: %s", rate, f.what), found[0].Format("%.2f"), found[1].Format("%.2f"), found[1].Over(found[0]).Format("%.4f"))
		}
		_, err := lab("down", "machines")
		return err
	})
}

// serve starts a receiver in the machine, by its console.
func serve(ctx context.Context, exe, run string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "--run", run, "attach", "machines/m")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	const serving = "iperf3 serves"
	fmt.Fprintf(in, "iperf3 -s -D && echo %s\n", serving)
	var text strings.Builder
	for b := make([]byte, 4096); err == nil && !strings.Contains(text.String(), serving); {
		var n int
		n, err = out.Read(b)
		text.Write(b[:n])
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	if _ = cmd.Wait(); err != nil {
		return fmt.Errorf("start iperf3 in the machine: %w: %q", err, text.String())
	}
	return nil
}

// machineFigure is one of what is measured, by the node at the other end.
type machineFigure struct {
	what string
	argv func(node string, rate int) []string
	read func([]byte) (float64, error)
}

func iperf(flags ...string) func(string, int) []string {
	return func(node string, _ int) []string {
		return append([]string{"iperf3", "-c", node, "-J", "-t", "3", "-O", "1"}, flags...)
	}
}

var machineFigures = []machineFigure{
	{"TCP to it, Mbit/s", iperf(), received},
	{"TCP from it, Mbit/s", iperf("-R"), received},
	{"UDP of 1,400 bytes to it, a tenth too much, Mbit/s", func(node string, rate int) []string {
		return iperf("-u", "-l", "1400", "-b", fmt.Sprintf("%dM", rate+rate/10))(node, rate)
	}, received},
	{"round trip, us", func(node string, _ int) []string {
		return []string{"ping", "-q", "-c", "100", "-i", "0.02", node}
	}, roundTrip},
}

// received is the rate of what iperf3 says was received, in Mbit/s.
func received(text []byte) (float64, error) {
	var said struct {
		Error string
		End   struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
			Sum struct {
				BitsPerSecond float64 `json:"bits_per_second"`
				Lost          float64 `json:"lost_percent"`
			}
		}
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return 0, err
	}
	bits := said.End.SumReceived.BitsPerSecond
	if bits == 0 {
		bits = said.End.Sum.BitsPerSecond * (1 - said.End.Sum.Lost/100)
	}
	if bits == 0 {
		return 0, fmt.Errorf("iperf3: nothing was received: %s", said.Error)
	}
	return bits / 1e6, nil
}

var meanTrip = regexp.MustCompile(`= [0-9.]+/([0-9.]+)/`)

// roundTrip is the mean that ping says, in microseconds.
func roundTrip(text []byte) (float64, error) {
	found := meanTrip.FindSubmatch(text)
	if found == nil {
		return 0, errors.New("ping says no round trip")
	}
	ms, err := strconv.ParseFloat(string(found[1]), 64)
	return ms * 1000, err
}
