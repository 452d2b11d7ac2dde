package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sublet/vnet"
)

// span is a flag's duration, written as in requests: 90s, 2h, 7d, 2w.
type span struct{ pflag.Value }

func (s span) Set(text string) error {
	d, err := vnet.ParseDuration(text)
	if err != nil {
		return err
	}
	return s.Value.Set(d.String())
}

func (s span) String() string {
	d, err := time.ParseDuration(s.Value.String())
	if err != nil || d == 0 {
		return "0"
	}
	return vnet.FormatDuration(d)
}

// durationsWithDays lets every flag that states a duration read it as requests do.
func durationsWithDays(c *cobra.Command) {
	spans := func(f *pflag.Flag) {
		if _, done := f.Value.(span); done || f.Value.Type() != "duration" {
			return
		}
		f.Value = span{f.Value}
		f.DefValue = f.Value.String()
	}
	c.Flags().VisitAll(spans)
	c.PersistentFlags().VisitAll(spans)
	for _, child := range c.Commands() {
		durationsWithDays(child)
	}
}

// flagError says what is wrong with a flag, and what to write.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &value):
		f := value.GetFlag()
		if f.Value.Type() == "duration" {
			return fmt.Errorf("--%s: %w", f.Name, value.Unwrap())
		}
		return fmt.Errorf("--%s: %q %s", f.Name, value.GetValue(), notOfType(f.Value.Type(), value.Unwrap()))
	case errors.As(err, &syntax):
		return fmt.Errorf("%q is no flag", syntax.GetSpecifiedFlag())
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("unknown flag: -%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return fmt.Errorf("unknown flag: --%s%s", unknown.GetSpecifiedName(), nearFlag(c, unknown.GetSpecifiedName()))
	}
	return err
}

// notOfType says why a flag's value is none of its type.
func notOfType(kind string, why error) string {
	if errors.Is(why, strconv.ErrRange) {
		return "is out of range"
	}
	switch {
	case kind == "bool":
		return "is neither true nor false"
	case strings.HasPrefix(kind, "uint"):
		return "is no whole number of 0 or more"
	case strings.HasPrefix(kind, "int"):
		return "is no whole number"
	case strings.HasPrefix(kind, "float"):
		return "is no number"
	case kind == "stringSlice":
		return "is no list: separate by commas, and write quotation marks in pairs"
	}
	return "is wrong: " + why.Error()
}

// nearFlag says which flag may have been meant; "": none.
func nearFlag(c *cobra.Command, name string) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := vnet.Nearest(name, names); near != "" {
		return ", did you mean --" + near + "?"
	}
	return ""
}

// bothSet is how cobra tells which flags exclude each other.
var bothSet = regexp.MustCompile(`\[([^]]*)\] were all set`)

// flagsTogether refuses flags that exclude each other, before cobra does in words of
// its own.
func flagsTogether(c *cobra.Command) error {
	err := c.ValidateFlagGroups()
	if err == nil {
		return nil
	}
	if found := bothSet.FindStringSubmatch(err.Error()); found != nil {
		err = fmt.Errorf("--%s exclude each other: state one of them", strings.Join(strings.Fields(found[1]), " and --"))
	}
	return usage(c, err)
}
