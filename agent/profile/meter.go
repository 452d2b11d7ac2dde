package profile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sublet/datapath/kernel"
)

// ErrNotHere says that this machine does not have a meter.
var ErrNotHere = errors.New("not on this machine")

// Meter reads something that a function uses.
type Meter interface {
	Name() string
	Unit() string
	// Sums says that readings only grow, and what counts is their difference.
	Sums() bool
	// Read is about the processes of a function; ErrNotHere: never.
	Read(pids []int) (float64, error)
}

// Meters are those there are; the first is what profiles are made of.
func Meters() []Meter { return []Meter{processor{}, memory{}, energy{root: rapl}} }

// processor is time on processors.
type processor struct{}

func (processor) Name() string { return "processor" }
func (processor) Unit() string { return "s" }
func (processor) Sums() bool   { return true }

// Read adds the clocks of processes, with all of their threads. The time of a
// process that has ended is lost.
func (processor) Read(pids []int) (float64, error) {
	total := 0.0
	for _, pid := range pids {
		used, err := kernel.ClockOf(pid)
		if err != nil {
			return 0, err
		}
		total += used.Seconds()
	}
	return total, nil
}

// memory is what is resident.
type memory struct{}

func (memory) Name() string { return "memory" }
func (memory) Unit() string { return "bytes" }
func (memory) Sums() bool   { return false }

func (memory) Read(pids []int) (float64, error) {
	total := 0.0
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
			pages, _ := strconv.ParseFloat(fields[1], 64)
			total += pages * float64(os.Getpagesize())
		}
	}
	return total, nil
}

const rapl = "/sys/class/powercap"

// energy is what the packages of processors use, for whatever runs on them.
type energy struct{ root string }

func (energy) Name() string { return "energy" }
func (energy) Unit() string { return "J" }
func (energy) Sums() bool   { return true }

func (e energy) Read([]int) (float64, error) {
	files, _ := filepath.Glob(filepath.Join(e.root, "intel-rapl:?", "energy_uj"))
	if len(files) == 0 {
		return 0, fmt.Errorf("no RAPL counter in %s: %w", e.root, ErrNotHere)
	}
	total := 0.0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		micro, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		total += micro / 1e6
	}
	return total, nil
}
