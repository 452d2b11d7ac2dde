package main

import (
	"errors"

	"github.com/spf13/cobra"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// finding is one line of the doctor's.
type finding struct {
	Feature string `json:"feature"`
	State   string `json:"state"` // yes, no, unknown
	Detail  string `json:"detail,omitempty"`
	Means   string `json:"means"`
}

func (a *app) doctor() *cobra.Command {
	return a.noun(&cobra.Command{
		Use:     "doctor",
		Short:   "Say what this kernel and machine can do and lack, and what that means",
		Example: "  sublet doctor\n  sublet doctor -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			findings := []finding{}
			var rows [][]string
			for _, f := range append(kernel.Features(), bpf.Features()...) {
				found := examine(f)
				findings = append(findings, found)
				rows = append(rows, []string{found.Feature, found.State, found.Means, found.Detail})
			}
			return a.print(findings, "FEATURE HERE WITHOUT-IT DETAIL", rows)
		},
	})
}

func examine(f kernel.Feature) finding {
	switch {
	case f.Err == nil:
		return finding{Feature: f.Name, State: "yes", Means: f.Means}
	case errors.Is(f.Err, kernel.ErrNotSupported):
		return finding{Feature: f.Name, State: "no", Detail: f.Err.Error(), Means: f.Means}
	}
	return finding{Feature: f.Name, State: "unknown", Detail: f.Err.Error(), Means: f.Means}
}
