package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"golang.org/x/term"
)

// noun makes a command that prints something in any of the formats.
func (a *app) noun(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&a.format, "output", "o", "table", "table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// checkFormat refuses an unknown format before anything is done.
func (a *app) checkFormat() error {
	switch a.format {
	case "table", "json", "yaml":
		return nil
	}
	return badInput{fmt.Errorf("--output %q: choose table, json or yaml", a.format)}
}

// print writes value as json or yaml, or as the rows of a table.
func (a *app) print(value any, header string, rows [][]string) error {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.IsNil() {
		value = reflect.MakeSlice(v.Type(), 0, 0).Interface() // [], not null
	}
	switch a.format {
	case "json":
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s\n", harmlessJSON(text))
		return err
	case "yaml":
		return a.printYAML(value)
	}
	return a.table(header, rows)
}

// printAll is print, with a sentence in place of an empty table.
func (a *app) printAll(value any, header string, rows [][]string, none string) error {
	if a.format == "table" && len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, none)
		return err
	}
	return a.print(value, header, rows)
}

// printYAML prints what JSON would, with the same names in the same order.
func (a *app) printYAML(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return err
	}
	plainStyle(&node)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return err
	}
	if f, ok := a.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) { // elsewhere it stays what it says
		_, err = fmt.Fprint(a.out, harmless(b.String()))
		return err
	}
	_, err = a.out.Write(b.Bytes())
	return err
}

// plainStyle drops the quotes and braces that came from JSON.
func plainStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plainStyle(c)
	}
}

// table prints rows under a header of words separated by spaces.
func (a *app) table(header string, rows [][]string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = harmlessLine(cell)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
