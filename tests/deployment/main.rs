//! The real client against the real embedded deployment, with the scripted agent.
//!
//! Each test has a deployment and a directory of its own, and ends within a limit.

#[path = "../support"]
mod support {
    #[macro_use]
    pub mod agent_main;
    pub mod deployed;
    pub mod proxy;
}

mod agents;
mod cuts;
mod exec;
mod files;
mod flood;
mod lifecycle;
mod runs;
mod storage;

use std::time::Duration;

use agents::*;
use cuts::*;
use exec::*;
use files::*;
use flood::*;
use lifecycle::*;
use runs::*;
use storage::*;

agent_main_tests! {
    wire_7_8_dropping_an_attached_run_cancels_it_and_ends_its_processes_only,
    wire_7_8_a_detached_run_completes_and_its_events_replay,
    wire_8_1_a_turn_dispatched_twice_is_one_run_under_one_reference,
    a_claim_that_is_not_proven_names_its_flag_and_gives_the_environment_back,
    stopping_a_sandbox_ends_its_run_as_cancelled,
    a_turn_past_its_deadline_is_ended_and_says_timeout,
    a_run_cut_at_twenty_points_gives_every_event_once,
    a_reader_that_vanished_is_missed_only_after_the_grace,
    without_rejoin_a_cut_is_told_with_the_cursor,
    wire_7_12_keep_alives_carry_a_silent_turn_over_an_idle_proxy,
    without_keep_alives_the_client_rejoins_and_gives_one_result,
    a_silence_longer_than_every_rejoin_is_settled_from_the_record,
    wire_7_6_the_frames_after_a_cursor_are_sent_and_nothing_runs_again,
    wire_7_14_a_reader_that_stalls_gets_every_frame,
    wire_7_13_twenty_thousand_deltas_stay_small_on_the_wire,
    wire_14_1_an_exit_code_is_an_answer_and_a_limit_ends_the_processes,
    fifty_megabytes_on_both_streams_end_with_the_first_ten_exact,
    wire_13_1_a_write_outside_the_workspace_is_refused,
    wire_13_2_an_absent_file_is_not_found,
    wire_13_8_odd_names_and_bytes_survive_a_round_trip,
    files_commands_and_the_agent_see_one_workspace,
    a_create_field_that_cannot_be_honoured_is_refused_by_name,
    a_backend_that_is_not_installed_is_refused_before_anything_is_made,
    wire_2_1_a_replayed_create_makes_no_second_sandbox,
    a_sandbox_that_fails_gives_its_handle_back_and_is_not_deleted,
    a_lifetime_that_is_over_retires_the_sandbox_and_its_run,
    listings_are_newest_first_and_a_handle_has_the_type_of_its_state,
    an_agent_that_dies_fails_its_run_and_the_session_goes_on,
    an_agent_that_hangs_meets_the_watchdog,
    stray_lines_and_unknown_updates_do_not_disturb_a_turn,
    a_giant_line_ends_only_its_agent,
    a_failing_agent_is_a_result_with_its_message,
    a_read_only_data_directory_is_refused_at_the_start,
    a_full_disk_refuses_by_name_and_room_makes_it_work_again,
}

/// Runs one test on a runtime of its own, at most this long.
fn within(limit: Duration, test: impl Future<Output = ()>) {
    support::agent_main::block_on(async {
        let ended = tokio::time::timeout(limit, test).await;
        assert!(ended.is_ok(), "the test took longer than {limit:?}");
    });
}
