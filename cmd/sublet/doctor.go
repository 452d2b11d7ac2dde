package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
	"sublet/datapath/vnode"
)

// finding is one line of the doctor's.
type finding struct {
	Feature string `json:"feature"`
	State   string `json:"state"` // yes, no, unknown
	Needed  bool   `json:"needed"`
	Detail  string `json:"detail,omitempty"`
	Means   string `json:"means"`
}

func (a *app) doctor() *cobra.Command {
	return a.noun(&cobra.Command{
		Use:   "doctor",
		Short: "Say what this kernel and machine can do and lack, and what that means",
		Long: `Say what this kernel and machine can do and lack, and what that means. Nothing
of the machine is changed. Exit 1: something that is needed is not there.`,
		Example: "  sublet doctor\n  sublet doctor -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			list := append(kernel.Features(), bpf.Features()...)
			list = append(append(list, machineFeatures()...), keeping())
			findings := []finding{}
			var rows [][]string
			for _, f := range list {
				found := examine(f)
				findings = append(findings, found)
				rows = append(rows, []string{found.Feature, found.State, need(f), found.Means, found.Detail})
			}
			if err := a.print(findings, "FEATURE HERE NEED WITHOUT-IT DETAIL", rows); err != nil {
				return err
			}
			return cmp.Or(bpf.Supported(), lacking(list))
		},
	})
}

// machineFeatures are what nodes of kind vm need.
func machineFeatures() []kernel.Feature {
	accelerator, why := vnode.Machines()
	qemu := kernel.Feature{Name: "machines", Means: "requests with kind: vm are refused"}
	fast := kernel.Feature{Name: "machines by KVM", Means: "machines are emulated in software, some ten times slower"}
	lacks := fmt.Errorf("%w: %s", kernel.ErrNotSupported, why)
	if accelerator != vnode.AcceleratorKVM {
		fast.Err = lacks
	}
	if accelerator == "" {
		qemu.Err = lacks
	}
	frames := kernel.Feature{Name: "machines by vhost", Means: "frames of machines pass their emulator, a system call for each"}
	if why := vnode.Vhost(); why != "" {
		frames.Err = fmt.Errorf("%w: %s", kernel.ErrNotSupported, why)
	}
	return []kernel.Feature{qemu, fast, frames}
}

// keeping is what nodes with state: keep need.
func keeping() kernel.Feature {
	f := kernel.Feature{Name: "kept files", Means: "nodes with state: keep, but machines, have no files to run on"}
	if why := vnode.Keeping(); why != "" {
		f.Err = fmt.Errorf("%w: %s", kernel.ErrNotSupported, why)
	}
	return f
}

func need(f kernel.Feature) string {
	if f.Needed {
		return "needed"
	}
	return "optional"
}

// lacking is an error that names what is needed and not there.
func lacking(list []kernel.Feature) error {
	var names []string
	for _, f := range list {
		if f.Needed && f.Lacks() {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("this machine lacks what is needed: %s", strings.Join(names, ", "))
}

func examine(f kernel.Feature) finding {
	found := finding{Feature: f.Name, State: "yes", Needed: f.Needed, Means: f.Means}
	if f.Err != nil {
		found.State, found.Detail = "unknown", f.Err.Error()
	}
	if f.Lacks() {
		found.State = "no"
	}
	return found
}
