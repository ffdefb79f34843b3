-- A refund that the bank refused to send can be sent again. put_back says that its
-- money lies where it was taken from, refused that the bank sends nothing under
-- reference, failures how often it said so. Before, one that failed was over.
ALTER TABLE refunds ADD COLUMN refused {{int}} NOT NULL DEFAULT 0 CHECK (refused IN (0, 1));
ALTER TABLE refunds ADD COLUMN put_back {{int}} NOT NULL DEFAULT 0 CHECK (put_back IN (0, 1));
ALTER TABLE refunds ADD COLUMN failures {{int}} NOT NULL DEFAULT 0 CHECK (failures >= 0);
UPDATE refunds SET refused = 1, put_back = 1, failures = 1 WHERE status = 'FAILED';
