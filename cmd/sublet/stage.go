package main

import (
	"errors"

	"github.com/spf13/cobra"

	"sublet/vnet"
)

func (a *app) stage() *cobra.Command {
	return a.list(&cobra.Command{
		Use:   "stage NAME [STAGE]",
		Short: "Begin a stage of a running network, or list its stages",
		Long: `Let a stage begin whose request says "begins: command", at once, and with it the stages
on command before it that have not begun. Room for it is booked since admission. Without
STAGE, which stages there are and when they begin.`,
		Example:           "  sublet stage course\n  sublet stage course transfer",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeLive,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.checkFormat(); err != nil {
				return err
			}
			if watched(c) && len(args) > 1 {
				return badInput{errors.New("--watch is for the list of stages: leave STAGE out")}
			}
			client, l, err := a.lookUp(c.Context(), args[0])
			if err == nil && len(args) > 1 {
				if l, err = client.BeginStage(c.Context(), l.ID(), args[1]); err == nil {
					l, err = client.WaitApplied(c.Context(), l.ID())
				}
			}
			if err != nil {
				return err
			}
			return a.printStages(l)
		},
	})
}

// stageView is one stage of a network as it is now.
type stageView struct {
	Name   string `json:"name"`
	Begins string `json:"begins"` // clock or command
	State  string `json:"state"`  // waits, runs or over
	When   string `json:"when,omitempty"`
}

func viewStages(l vnet.Lease) []stageView {
	views := []stageView{}
	for i, s := range l.Request.Stages {
		v := stageView{Name: s.Name, Begins: "clock", State: "waits"}
		if s.OnCommand {
			v.Begins = "command"
		}
		if s.Timed() {
			v.When = when(l.Window.Start.Add(s.After))
		}
		switch {
		case l.Stage == i:
			v.State = "runs"
		case i < l.Stage:
			v.State = "over"
		}
		views = append(views, v)
	}
	return views
}

func (a *app) printStages(l vnet.Lease) error {
	views, rows := viewStages(l), [][]string(nil)
	for _, v := range views {
		rows = append(rows, []string{v.Name, v.Begins, orDash(v.When), v.State})
	}
	return a.printAll(views, "STAGE BEGINS WHEN STATE", rows, "no stages")
}
