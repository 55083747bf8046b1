package fdbmodel

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/state"
)

// eventTests are tests that cause an event, and the names by one of which they, or functions of
// their package that they call, must ask for it.
type eventTests struct {
	asks  string
	tests string // each with its directory below this one
}

var testsOfEvents = map[state.EventKind]eventTests{
	state.EventClaim: {"Claim", ":TestAClaimFitsTheWorker :TestFuturesThatComeBackAreClaimedAgain " +
		":TestBlindWritesAreThoseOfTheTable"},
	state.EventRealize: {"Result", ":TestFinishSeesItsClaim :TestLateTwinsDoNotCommit :TestRealizedInputsBlockNothing"},
	state.EventFail:    {"Exception Fail fail", ":TestHistoryAfterARetry :TestARetryPrefersAnotherWorker"},
	state.EventRelinquish: {"Relinquish Leave EventRelinquish",
		":TestWhatFinishTells :TestBlindWritesAreThoseOfTheTable :TestWhatIsGivenBackWakesAnIdleWorker"},
	state.EventReject: {"Reject", ":TestWhatFewRejectWaitsForItsBackoff :TestACrowdOfRejectionsIsBounded " +
		":TestAPeerPassesOverWhatItRejectedAtAnotherHead"},
	state.EventReap: {"ReapClaims", ":TestOnlyTheMostSuspiciousIsCharged :TestADeathIsInTheHistory " +
		":TestTheDeadChangeNothing"},
	state.EventReappear: {"Heartbeat reappear Leave",
		":TestAWorkerThatComesBackUndoesItsDeath :TestAReturnThatFailsIsTakenUpAgain"},
	state.EventCancel:  {"Cancel CancelMany", ":TestWhatFinishTells :TestCancelledInput :TestManyAtOnce"},
	state.EventPromote: {"PromoteDue", ":TestPromotingDealsOutTheBatch :TestBlockedAndDelayed"},
	state.EventRetry:   {"Retry RetryMany", ":TestHistoryAfterARetry :TestManyAtOnce names:TestUniqueRetry"},
	state.EventAssign: {"Assign AssignTo", ":TestHeldFuturesWaitForTheirWorker :TestAssignedAtSubmit :TestReassign " +
		":TestAssignmentsMoveWhenTheirWorkerGoes"},
	state.EventUnassign: {"Unassign ReapClaims Leave Assign", ":TestHeldFuturesWaitForTheirWorker " +
		":TestAssignmentsMoveWhenTheirWorkerGoes :TestReassign"},
	state.EventUnblock: {"Inputs inputs", ":TestRealizedInputsBlockNothing :TestBlockedAndDelayed"},
	state.EventUpstream: {"KindUpstream", ":TestFailureUpstreamNamesTheChain :TestCancelledInput " +
		":TestWhatMustBeNearFailsWithTheObject"},
	state.EventLose: {"ReportLost Lose", "results:TestLostGraphIsRebuilt results:TestLossThatMayNotBeRebuilt"},
	state.EventBlock: {"Block", ":TestOldLookLeavesANewMark :TestUnknownResults " +
		"lanes:TestABlockedFutureHoldsUpNobodyItWaitsFor"},
	state.EventInfeasible: {"EndInfeasible", ":TestUnschedulableAreFoundByKind :TestTheTimeOfUnschedulableBeginsAgain " +
		"lanes:TestADamagedLaneHidesNothingInfeasible"},
	state.EventReplace: {"ReplaceUnplaceable", "results:TestWhatMustBeNearIsReplaced results:TestUnknownResultsOfObjects"},
	state.EventAdmit: {"SetKind Finish", "lanes:TestLaneAdmitsByPriorityAndCommit " +
		"lanes:TestLaneWithARate lanes:TestLanesTakeTurns"},
	state.EventSnooze: {"Snooze", ":TestSnoozeCostsNoAttempt :TestUnknownResultsOfTime"},
	state.EventExpire: {"Expire EndOverdue", ":TestWhatWaitsTooLongEnds :TestNoAttemptBeginsAfterTheTime " +
		":TestWhatGoesBackInTimeStillEnds"},
	state.EventFulfill: {"Resolve ResolveBy", "promises:TestAPromiseHasOneValue promises:TestLargeValues " +
		"promises:TestUnknownResultsOfPromises"},
	state.EventDecline: {"Reject RejectBy", "promises:TestARejectedPromiseMayWaitAgain " +
		"promises:TestUnknownResultsOfPromises"},
	state.EventTake: {"Gather", "lanes:TestBundlesGatherWhatIsInLine lanes:TestBundlesTakeWhatTheyCanRun"},
	state.EventGather: {"Gather", "lanes:TestBundlesThatGatherTwice lanes:TestAGatherSeesWhoLeavesTheLineMeanwhile " +
		"lanes:TestUnknownResultsOfGathers"},
}

// testsOf returns the tests of an event, once it has found each of them and that it asks for
// the event.
func (s *sources) testsOf(t *testing.T, k state.EventKind) (found []string) {
	known := testsOfEvents[k]
	require.NotEmpty(t, known.tests, "event %v has no tests: name some", k)
	for name := range strings.FieldsSeq(known.tests) {
		below, test, _ := strings.Cut(name, ":")
		dir := strings.TrimSuffix("fdbmodel/"+below, "/")
		if !s.asks(dir, test, strings.Fields(known.asks), map[string]bool{}) {
			t.Errorf("%s in %s is no test, or has none of %q: does it cause the event %v?", test, dir, known.asks, k)
		}
		found = append(found, fmt.Sprintf("`%s` %s", test, dir))
	}
	return found
}

// asks reports whether a function of the tests of a directory has one of some names in its
// body, or a function of these tests that it calls.
func (s *sources) asks(dir, function string, names []string, seen map[string]bool) bool {
	body := s.tests[dir][function]
	if body == nil || seen[function] {
		return false
	}
	seen[function] = true
	for _, name := range names {
		if body[name] {
			return true
		}
	}
	for name := range body {
		if s.asks(dir, name, names, seen) {
			return true
		}
	}
	return false
}

func (s *sources) addTest(dir string, fn *ast.FuncDecl) {
	if s.tests[dir] == nil {
		s.tests[dir] = map[string]map[string]bool{}
	}
	names := s.tests[dir][fn.Name.Name] // methods of several types may share it
	if names == nil {
		names = map[string]bool{}
		s.tests[dir][fn.Name.Name] = names
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id != fn.Name {
			names[id.Name] = true
		}
		return true
	})
}
