package layout

var (
	activitySchema         = schemaOf[Activity]()
	aliasRecordSchema      = schemaOf[AliasRecord]()
	attemptsSchema         = schemaOf[Attempts]()
	batchChunkSchema       = schemaOf[BatchChunk]()
	batchRecordSchema      = schemaOf[BatchRecord]()
	suspectRecordSchema    = schemaOf[SuspectRecord]()
	wakeRecordSchema       = schemaOf[WakeRecord]()
	blockedRecordSchema    = schemaOf[BlockedRecord]()
	cancelRequestSchema    = schemaOf[CancelRequest]()
	claimSchema            = schemaOf[Claim]()
	claimBatchSchema       = schemaOf[ClaimBatch]()
	configSchema           = schemaOf[Config]()
	copyRecordSchema       = schemaOf[CopyRecord]()
	doneEntrySchema        = schemaOf[DoneEntry]()
	exceptionSchema        = schemaOf[Exception]()
	heartbeatSchema        = schemaOf[Heartbeat]()
	historyRecordSchema    = schemaOf[HistoryRecord]()
	idleRecordSchema       = schemaOf[IdleRecord]()
	incomingRecordSchema   = schemaOf[IncomingRecord]()
	janitorRecordSchema    = schemaOf[JanitorRecord]()
	jobSchema              = schemaOf[Job]()
	jobLeaseSchema         = schemaOf[JobLease]()
	jobProducerSchema      = schemaOf[JobProducer]()
	jobProgressSchema      = schemaOf[JobProgress]()
	jobsFirstSchema        = schemaOf[JobsFirst]()
	jobsHeadSchema         = schemaOf[JobsHead]()
	laneKindSchema         = schemaOf[LaneKind]()
	laneRecordSchema       = schemaOf[LaneRecord]()
	laneTotalSchema        = schemaOf[LaneTotal]()
	limitsSchema           = schemaOf[Limits]()
	lineEntrySchema        = schemaOf[LineEntry]()
	lineRecordSchema       = schemaOf[LineRecord]()
	meteredSchema          = schemaOf[Metered]()
	moduleSchema           = schemaOf[Module]()
	noticeSchema           = schemaOf[Notice]()
	paceRecordSchema       = schemaOf[PaceRecord]()
	parkedJobSchema        = schemaOf[ParkedJob]()
	pauseRecordSchema      = schemaOf[PauseRecord]()
	pinsRecordSchema       = schemaOf[PinsRecord]()
	progressRecordSchema   = schemaOf[ProgressRecord]()
	rateRecordSchema       = schemaOf[RateRecord]()
	resultSchema           = schemaOf[Result]()
	scheduleRecordSchema   = schemaOf[ScheduleRecord]()
	scheduleStateSchema    = schemaOf[ScheduleState]()
	sessionRecordSchema    = schemaOf[SessionRecord]()
	resolveRecordSchema    = schemaOf[ResolveRecord]()
	specSchema             = schemaOf[Spec]()
	uniqueRecordSchema     = schemaOf[UniqueRecord]()
	usageRecordSchema      = schemaOf[UsageRecord]()
	workerWakeRecordSchema = schemaOf[WorkerWakeRecord]()
	workerInfoSchema       = schemaOf[WorkerInfo]()
)

func (*Activity) schema() *schema         { return activitySchema }
func (*AliasRecord) schema() *schema      { return aliasRecordSchema }
func (*Attempts) schema() *schema         { return attemptsSchema }
func (*BatchChunk) schema() *schema       { return batchChunkSchema }
func (*BatchRecord) schema() *schema      { return batchRecordSchema }
func (*SuspectRecord) schema() *schema    { return suspectRecordSchema }
func (*WakeRecord) schema() *schema       { return wakeRecordSchema }
func (*BlockedRecord) schema() *schema    { return blockedRecordSchema }
func (*CancelRequest) schema() *schema    { return cancelRequestSchema }
func (*Claim) schema() *schema            { return claimSchema }
func (*ClaimBatch) schema() *schema       { return claimBatchSchema }
func (*Config) schema() *schema           { return configSchema }
func (*CopyRecord) schema() *schema       { return copyRecordSchema }
func (*DoneEntry) schema() *schema        { return doneEntrySchema }
func (*Exception) schema() *schema        { return exceptionSchema }
func (*Heartbeat) schema() *schema        { return heartbeatSchema }
func (*HistoryRecord) schema() *schema    { return historyRecordSchema }
func (*IdleRecord) schema() *schema       { return idleRecordSchema }
func (*IncomingRecord) schema() *schema   { return incomingRecordSchema }
func (*JanitorRecord) schema() *schema    { return janitorRecordSchema }
func (*Job) schema() *schema              { return jobSchema }
func (*JobLease) schema() *schema         { return jobLeaseSchema }
func (*JobProducer) schema() *schema      { return jobProducerSchema }
func (*JobProgress) schema() *schema      { return jobProgressSchema }
func (*JobsFirst) schema() *schema        { return jobsFirstSchema }
func (*JobsHead) schema() *schema         { return jobsHeadSchema }
func (*LaneKind) schema() *schema         { return laneKindSchema }
func (*LaneRecord) schema() *schema       { return laneRecordSchema }
func (*LaneTotal) schema() *schema        { return laneTotalSchema }
func (*Limits) schema() *schema           { return limitsSchema }
func (*LineEntry) schema() *schema        { return lineEntrySchema }
func (*LineRecord) schema() *schema       { return lineRecordSchema }
func (*Metered) schema() *schema          { return meteredSchema }
func (*Module) schema() *schema           { return moduleSchema }
func (*Notice) schema() *schema           { return noticeSchema }
func (*PaceRecord) schema() *schema       { return paceRecordSchema }
func (*ParkedJob) schema() *schema        { return parkedJobSchema }
func (*PauseRecord) schema() *schema      { return pauseRecordSchema }
func (*PinsRecord) schema() *schema       { return pinsRecordSchema }
func (*ProgressRecord) schema() *schema   { return progressRecordSchema }
func (*RateRecord) schema() *schema       { return rateRecordSchema }
func (*Result) schema() *schema           { return resultSchema }
func (*ScheduleRecord) schema() *schema   { return scheduleRecordSchema }
func (*ScheduleState) schema() *schema    { return scheduleStateSchema }
func (*SessionRecord) schema() *schema    { return sessionRecordSchema }
func (*ResolveRecord) schema() *schema    { return resolveRecordSchema }
func (*Spec) schema() *schema             { return specSchema }
func (*UniqueRecord) schema() *schema     { return uniqueRecordSchema }
func (*UsageRecord) schema() *schema      { return usageRecordSchema }
func (*WorkerWakeRecord) schema() *schema { return workerWakeRecordSchema }
func (*WorkerInfo) schema() *schema       { return workerInfoSchema }
