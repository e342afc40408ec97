import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.TopicPartition;

/** Cancels the running reassignment of partitions: BOOTSTRAP_SERVERS TOPIC-PARTITION... No tool of Kafka 2.4 does. */
public class CancelReassignment {
    public static void main(String[] words) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        Map<TopicPartition, Optional<NewPartitionReassignment>> wishes = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            int dash = words[i].lastIndexOf('-');
            int partition = Integer.parseInt(words[i].substring(dash + 1));
            wishes.put(new TopicPartition(words[i].substring(0, dash), partition), Optional.empty());
        }
        try (Admin admin = Admin.create(properties)) {
            admin.alterPartitionReassignments(wishes).all().get();
        }
    }
}
