package fdbmodel

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// eventTests are tests that cause an event, and the names by one of which they, or functions of
// their package that they call, must ask for it.
type eventTests struct {
	asks  string
	tests string // each with its directory below this one
}

var testsOfEvents = map[EventKind]eventTests{
	EventClaim: {"Claim", ":TestAClaimFitsTheWorker :TestFuturesThatComeBackAreClaimedAgain " +
		":TestBlindWritesAreThoseOfTheTable"},
	EventRealize: {"Result", ":TestFinishSeesItsClaim :TestLateTwinsDoNotCommit :TestRealizedInputsBlockNothing"},
	EventFail:    {"Exception Fail fail", ":TestHistoryAfterARetry :TestARetryPrefersAnotherWorker"},
	EventRelinquish: {"Relinquish Leave EventRelinquish",
		":TestWhatFinishTells :TestBlindWritesAreThoseOfTheTable :TestWhatIsGivenBackWakesAnIdleWorker"},
	EventReject: {"Reject", ":TestWhatFewRejectWaitsForItsBackoff :TestACrowdOfRejectionsIsBounded " +
		":TestAPeerPassesOverWhatItRejectedAtAnotherHead"},
	EventReap: {"ReapClaims", ":TestOnlyTheMostSuspiciousIsCharged :TestADeathIsInTheHistory " +
		":TestTheDeadChangeNothing"},
	EventReappear: {"Heartbeat reappear Leave",
		":TestAWorkerThatComesBackUndoesItsDeath :TestAReturnThatFailsIsTakenUpAgain"},
	EventCancel:  {"Cancel CancelMany", ":TestWhatFinishTells :TestCancelledInput :TestManyAtOnce"},
	EventPromote: {"PromoteDue", ":TestPromotingDealsOutTheBatch :TestBlockedAndDelayed"},
	EventRetry:   {"Retry RetryMany", ":TestHistoryAfterARetry :TestManyAtOnce names:TestUniqueRetry"},
	EventAssign: {"Assign AssignTo", ":TestHeldFuturesWaitForTheirWorker :TestAssignedAtSubmit :TestReassign " +
		":TestAssignmentsMoveWhenTheirWorkerGoes"},
	EventUnassign: {"Unassign ReapClaims Leave Assign", ":TestHeldFuturesWaitForTheirWorker " +
		":TestAssignmentsMoveWhenTheirWorkerGoes :TestReassign"},
	EventUnblock: {"Inputs inputs", ":TestRealizedInputsBlockNothing :TestBlockedAndDelayed"},
	EventUpstream: {"KindUpstream", ":TestFailureUpstreamNamesTheChain :TestCancelledInput " +
		":TestWhatMustBeNearFailsWithTheObject"},
	EventLose: {"ReportLost Lose", "results:TestLostGraphIsRebuilt results:TestLossThatMayNotBeRebuilt"},
	EventBlock: {"Block", ":TestOldLookLeavesANewMark :TestUnknownResults " +
		"lanes:TestABlockedFutureHoldsUpNobodyItWaitsFor"},
	EventInfeasible: {"EndInfeasible", ":TestUnschedulableAreFoundByKind :TestTheTimeOfUnschedulableBeginsAgain " +
		"lanes:TestADamagedLaneHidesNothingInfeasible"},
	EventReplace: {"ReplaceUnplaceable", "results:TestWhatMustBeNearIsReplaced results:TestUnknownResultsOfObjects"},
	EventAdmit: {"SetKind Finish", "lanes:TestLaneAdmitsByPriorityAndCommit " +
		"lanes:TestLaneWithARate lanes:TestLanesTakeTurns"},
	EventSnooze: {"Snooze", ":TestSnoozeCostsNoAttempt :TestUnknownResultsOfTime"},
	EventExpire: {"Expire EndOverdue", ":TestWhatWaitsTooLongEnds :TestNoAttemptBeginsAfterTheTime " +
		":TestWhatGoesBackInTimeStillEnds"},
	EventTake: {"Gather", "lanes:TestBundlesGatherWhatIsInLine lanes:TestBundlesTakeWhatTheyCanRun"},
	EventGather: {"Gather", "lanes:TestBundlesThatGatherTwice lanes:TestAGatherSeesWhoLeavesTheLineMeanwhile " +
		"lanes:TestUnknownResultsOfGathers"},
}

// testsOf returns the tests of an event, once it has found each of them and that it asks for
// the event.
func (s *sources) testsOf(t *testing.T, k EventKind) (found []string) {
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
