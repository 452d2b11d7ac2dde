package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages of all commands",
		Long: `Write a manual page for each command (section 1) into a directory, which is made if it
is not there.`,
		Example: "  sublet man /usr/local/share/man/man1\n  man -l man/sublet-up.1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return badInput{fmt.Errorf("write manual pages: %w", err)}
			}
			root := c.Root()
			root.DisableAutoGenTag = true // so that the same program writes the same pages
			root.InitDefaultCompletionCmd()
			header := &doc.GenManHeader{Section: "1", Source: "Sublet " + versionOf(), Manual: "Sublet"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}
