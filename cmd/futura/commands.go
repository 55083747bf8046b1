package main

import "github.com/spf13/cobra"

// commandGroup is a part of the list of commands in the help.
type commandGroup struct {
	id, title string
	commands  []*cobra.Command
}

// commandGroups are all commands, in the order of the help.
func (a *app) commandGroups() []commandGroup {
	return []commandGroup{
		{"start", "Start a process:", []*cobra.Command{
			a.devCommand(), a.serveCommand(), a.workerCommand(), a.headCommand(),
		}},
		{"run", "Submit work, and get its results:", []*cobra.Command{
			a.submitCommand(), a.awaitCommand(), a.getCommand(), a.putCommand(), a.functionCommand(), a.batchCommand(),
			a.promiseCommand(), a.actorCommand(), a.tasksCommand(), a.jobsCommand(), a.scheduleCommand(), a.forkCommand(),
		}},
		{"look", "Look:", []*cobra.Command{
			a.listCommand(), a.explainCommand(), a.graphCommand(), a.stepsCommand(), a.forksCommand(), a.workersCommand(),
			a.peersCommand(), a.usageCommand(), a.activityCommand(), a.inspectCommand(), a.topCommand(), a.uiCommand(),
		}},
		{"change", "Change what was submitted:", []*cobra.Command{
			a.cancelCommand(), a.retryCommand(), a.deleteCommand(), a.cloneCommand(), a.transferCommand(), a.pinCommand(),
			a.unpinCommand(), a.uniqueCommand(),
		}},
		{"operate", "Operate a cluster:", []*cobra.Command{
			a.clusterCommand(), a.pauseCommand(), a.resumeCommand(), a.laneCommand(), a.limitsCommand(), a.tokenCommand(),
			a.checkCommand(), a.supportCommand(), a.backupCommand(), a.restoreCommand(), a.migrateCommand(),
		}},
		{"other", "Other:", []*cobra.Command{a.versionCommand()}},
	}
}

// addCommands adds all commands to the root.
func (a *app) addCommands(root *cobra.Command) {
	for _, g := range a.commandGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
}
